"""What the scripts of this folder say, without torch: the test of how a bench merges other implementations."""

import json
import sys

print(json.dumps({"versions": {"fake": "1"}}), flush=True)
for line in sys.stdin:
    question = json.loads(line)
    if question["command"] == "prepare":
        if "program" in question:
            assert question["values"]["rows"] == "9" and question["dtype"] == "fp32"
        elif question["op"] == "dense_decode":
            assert question["checked_queries"] == list(range(question["new_tokens"]))
            assert question["tokens"] == 300 + question["new_tokens"] and question["batch"] in (1, 2)
        else:
            assert question["op"] in ("dense", "dense_bwd", "window") and question["tokens"] > 0
            assert question["checked_queries"][0] == 0 and question["checked_queries"][-1] == question["tokens"] - 1
        answer = {
            "implementations": [
                {"name": "fake fast", "relative_error": 0.001, "note": "k and v expanded"},
                {"name": "fake broken", "relative_error": 0.001, "note": ""},
                {"name": "fake absent", "trouble": "no kernel, for a reason"},
            ]
        }
    elif question["name"] == "fake broken":
        answer = {"trouble": "out of memory"}
    else:
        assert question["name"] == "fake fast"
        answer = {"milliseconds": 0.5}
    print(json.dumps(answer), flush=True)
