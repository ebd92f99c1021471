"""A graph over MCP, the Model Context Protocol: tools, on stdio or HTTP (extra `mcp`)."""
