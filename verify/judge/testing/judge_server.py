"""A tiny OpenAI-compatible endpoint for tests: prints its port, then answers by the model's name."""

import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CALLS = {}


def completion(content):
    return {"choices": [{"message": {"role": "assistant", "content": content}}]}


def opinion(cheating, rule, reason):
    return json.dumps({"cheating": cheating, "rule": rule, "reason": reason})


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        model = request["model"]
        prompt = request["messages"][0]["content"]
        CALLS[model] = CALLS.get(model, 0) + 1
        status, body = 200, completion(opinion(False, 0, "fine"))
        if model == "thinks":
            body = completion("Let me see.\n" + opinion(True, 1, "it calls torch.matmul") + "\n")
        elif model == "flaky" and CALLS[model] < 3:
            status, body = 503, {"error": "busy"}
        elif model == "broken":
            status, body = 500, {"error": "no"}
        elif model == "locked":
            status, body = 401, {"error": {"message": "no such key"}}
        elif model == "slow":
            time.sleep(5)
        elif model == "not_json":
            body = "hello"
        elif model == "babbles":
            body = completion("I think it is fine.")
        elif model == "by_seed":
            seed = request.get("seed")
            body = completion("I think it is fine." if seed is None else opinion(False, 0, f"seed {seed}"))
        elif model == "key":
            body = completion(opinion(True, 3, self.headers.get("Authorization", "none")))
        elif model == "echo":
            seen = "the reference" in prompt and "the candidate {reference}" in prompt and "{candidate}" not in prompt
            body = completion(opinion(False, 0, "seen" if seen else prompt))
        data = json.dumps(body).encode() if not isinstance(body, str) else body.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
