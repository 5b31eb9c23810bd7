"""What the scripts of peers share: how they find torch, take a time and speak with the bench.

A script is started by the bench and speaks one JSON object a line: questions on its input, answers on its output. It
greets with {"versions": ...}, or with {"unavailable": reason} and ends. Then
  {"command": "prepare", "flush_bytes", ...}
      makes, runs and checks every implementation that serves the question ->
      {"implementations": [{"name", "relative_error", ...} or {"name", "trouble"}, ...]}
  {"command": "sample", "name"} -> {"milliseconds": of one run by CUDA events, begun with a cold L2}
and it leaves at the end of its input. What "prepare" does is in no time.
"""

import argparse
import json
import os
import re
import sys

WARM_UPS = 3
# The device waits a tenth of a millisecond or two before the first event, so that it never waits for Python after it.
PAUSE_CYCLES = 300_000
# Relative RMS of the checked rows against fp64 arithmetic; an implementation beyond it computes something else.
TOLERANCE = {"bf16": 5e-3, "fp16": 1e-3, "fp32": 1e-3}


def import_torch(device):
    """torch, or the reason why nothing can be measured."""
    try:
        import torch
    except ImportError as error:
        return None, f"torch cannot be imported: {error}"
    if device != "cpu":
        ordinal, count = int(device.partition(":")[2] or 0), torch.cuda.device_count()
        if ordinal >= count:
            return None, f"torch sees {count} CUDA devices, so there is no {device}"
        torch.cuda.set_device(ordinal)  # whose stream the events and the pause are in
    return torch, None


def versions(torch, device):
    facts = {"python": sys.version.split()[0], "torch": torch.__version__}
    if device != "cpu":
        facts["cudnn"] = str(torch.backends.cudnn.version())
        facts["cuda"] = str(torch.version.cuda)
        facts["device"] = torch.cuda.get_device_name(device)
    return facts


class Timer:
    """Milliseconds of one call: CUDA events behind a write that fills the L2, or the host's clock on the CPU."""

    def __init__(self, torch, device, flush_bytes):
        self.torch, self.cuda = torch, device != "cpu"
        if self.cuda:
            self.flush = torch.empty(max(flush_bytes, 1), dtype=torch.uint8, device=device)
            self.before = torch.cuda.Event(enable_timing=True)
            self.after = torch.cuda.Event(enable_timing=True)

    def __call__(self, run):
        if not self.cuda:
            from time import perf_counter

            start = perf_counter()
            run()
            return (perf_counter() - start) * 1e3
        self.flush.zero_()
        self.torch.cuda._sleep(PAUSE_CYCLES)
        self.before.record()
        run()
        self.after.record()
        self.after.synchronize()
        return self.before.elapsed_time(self.after)


def dtype_of(torch, name):
    return {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}[name]


def first_line(error):
    return (str(error) or type(error).__name__).splitlines()[0][:160]


class Session:
    """`implementations(torch, device, question)` yields (name, run, facts), or (name, None, {"trouble"})."""

    def __init__(self, torch, device, implementations):
        self.torch, self.device, self.implementations = torch, device, implementations
        self.timer = None
        self.runners = {}

    def prepare(self, question):
        self.timer = None
        self.runners = {}
        if self.device != "cpu":
            self.torch.cuda.empty_cache()
        self.timer = Timer(self.torch, self.device, int(question["flush_bytes"]))
        answers = []
        for name, run, facts in self.implementations(self.torch, self.device, question):
            if run:
                self.runners[name] = run
            answers.append({"name": name, **facts})
        return {"implementations": answers}

    def sample(self, question):
        return {"milliseconds": self.timer(self.runners[question["name"]])}

    def answer(self, question):
        command = {"prepare": self.prepare, "sample": self.sample}.get(question.get("command"))
        if not command:
            return {"trouble": f"unknown command {question.get('command')!r}"}
        try:
            with self.torch.inference_mode():
                return command(question)
        except Exception as error:  # the trouble of one question must not end the others
            return {"trouble": first_line(error)}


def serve(description, implementations):
    """Answers questions until the input ends."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--device", default="cuda:0", help="cuda:N, or cpu to try the protocol")
    device = parser.parse_args().device
    if not re.fullmatch(r"cpu|cuda(:\d+)?", device):
        parser.error(f"--device {device}: must be cpu or cuda:N")

    # The protocol keeps the output for itself; whatever the libraries print goes where errors go.
    output = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    def say(answer):
        print(json.dumps(answer), file=output, flush=True)

    torch, reason = import_torch(device)
    if reason:
        say({"unavailable": reason})
        return
    say({"versions": versions(torch, device)})
    session = Session(torch, device, implementations)
    for line in sys.stdin:
        say(session.answer(json.loads(line)))
