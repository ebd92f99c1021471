"""A graph over MCP, the Model Context Protocol: tools and resources, on stdio or HTTP (extra `mcp`)."""
