"""Questions of twelve shapes, with gold answers by an independent script."""
