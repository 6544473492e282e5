"""An MCP server over stdio with one tool, without dependencies."""

import json
import sys

PLAIN = {"utilize": "use", "commence": "start", "terminate": "end"}
TOOL = {
    "name": "plain_word",
    "description": "Return a plain word for a rare one.",
    "inputSchema": {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
}


def answer(method: str, params: dict) -> dict:
    if method == "initialize":
        facts = {"name": "words", "version": "1.0.0"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": facts}
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        word = params["arguments"]["word"]
        return {"content": [{"type": "text", "text": PLAIN.get(word, word)}]}
    return {}


for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        result = answer(request["method"], request.get("params", {}))
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}) + "\n")
        sys.stdout.flush()
