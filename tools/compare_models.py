"""Compares model folders with `transformers`: prompt tokens, greedy tokens and their log-probabilities.

    bazel run //tools:compare_models -- FOLDER...

//rollout:serve and `transformers` complete each prompt in float32 on the CPU, one after the other. Each folder gets a
line: equal, DIFFERENT (with the first difference; a small margin between the two largest logits lets rounding decide),
refused (the sentence is serve's), or FAILED (a side gave no response). Exit codes: 0 all are equal or refused, 1 else.
"""

import argparse
import contextlib
import os
import subprocess
import threading

import openai
import torch
import transformers

PROMPTS = ("def forward(self, x):\n    return x * 2.0 + 1\n", "It's\t12345, na\u00efve \u4f60\u597d \U0001f600?")
REFUSED = 2  # serve's exit code for a folder that it does not support


class NoAnswer(Exception):
    """The word for a folder without a response, and the reason."""


@contextlib.contextmanager
def server(folder, options):
    """Starts serve; gives the address that it prints."""
    command = [options.serve, f"--model={folder}", "--served_model_name=model", "--device=cpu", "--port=0",
               f"--threads={options.threads}"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    deadline = threading.Timer(options.timeout, process.kill)
    deadline.start()
    try:
        line = "serve: ended without a message"
        for line in process.stdout:
            if "http://" in line:
                break
        else:
            raise NoAnswer("refused" if process.wait() == REFUSED else "FAILED", line.strip())
        yield next(word for word in line.split() if word.startswith("http://"))
    finally:
        process.terminate()
        process.stdout.close()
        process.wait()
        deadline.cancel()


def ask_serve(url, prompt, options):
    with openai.DefaultHttpxClient(trust_env=False) as http:  # no proxy for loopback
        client = openai.OpenAI(base_url=url, api_key="none", timeout=options.timeout, max_retries=0, http_client=http)
        try:
            # echo: the log-probabilities have an entry for every token, those without text too.
            choice = client.completions.create(
                model="model", prompt=prompt, temperature=0, max_tokens=options.tokens, logprobs=0, echo=True,
                extra_body={"ignore_eos": True, "return_token_ids": True}).choices[0]
        except openai.OpenAIError as error:
            raise NoAnswer("FAILED", f"serve: {error}") from error
    ids = choice.prompt_token_ids
    return {"prompt": ids, "tokens": choice.token_ids, "log_probs": choice.logprobs.token_logprobs[len(ids):]}


def ask_transformers(folder, options):
    """The responses of `transformers`. "margins": by how much each token's logit exceeds the second largest."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    # In place of the folder's own settings, which may hold penalties and end tokens.
    model.generation_config = transformers.GenerationConfig(
        max_new_tokens=options.tokens, pad_token_id=0, output_logits=True, return_dict_in_generate=True)
    for prompt in options.prompt:
        ids = torch.tensor([tokenizer(prompt)["input_ids"]])
        out = model.generate(ids, attention_mask=torch.ones_like(ids))
        tokens = out.sequences[0, ids.shape[1]:]
        logits = torch.cat(out.logits).double()  # [response, vocabulary]
        largest = logits.topk(2).values
        yield {"prompt": ids[0].tolist(), "tokens": tokens.tolist(),
               "log_probs": logits.log_softmax(-1).gather(1, tokens[:, None])[:, 0].tolist(),
               "margins": (largest[:, 0] - largest[:, 1]).tolist()}


def difference(own, peer, tolerance):
    """The largest difference of log-probabilities, and what differs first (None: nothing)."""
    if own["prompt"] != peer["prompt"]:
        return 0.0, f"the prompt has ids {own['prompt']}, with transformers {peer['prompt']}"
    if not len(own["tokens"]) == len(own["log_probs"]) == len(peer["tokens"]):
        return 0.0, f"not every one of {len(peer['tokens'])} tokens has a log-probability"
    worst = 0.0
    for i, (token, other) in enumerate(zip(own["tokens"], peer["tokens"])):
        if token != other:
            return worst, f"token {i} is {token}, with transformers {other} (margin {peer['margins'][i]:.1e})"
        distance = abs(own["log_probs"][i] - peer["log_probs"][i])
        worst = max(worst, distance)
        if not distance <= tolerance:  # NaN is none
            return worst, f"the log-probability of token {i} differs by {distance:.1e}"
    return worst, None


def compare(folder, options):
    """The word for a folder, a sentence about it, and the largest difference of log-probabilities."""
    try:
        with server(folder, options) as url:
            own = [ask_serve(url, prompt, options) for prompt in options.prompt]
    except NoAnswer as answer:
        return *answer.args, 0.0
    try:
        peers = list(ask_transformers(folder, options))
    except Exception as error:  # its kind depends on what is wrong with the folder
        return "FAILED", f"transformers: {type(error).__name__}: {' '.join(str(error).split())}", 0.0
    results = [difference(a, b, options.tolerance) for a, b in zip(own, peers)]
    worst = max(distance for distance, _ in results)
    found = [f"prompt {i}: {what}" for i, (_, what) in enumerate(results) if what]
    text = f"{sum(len(peer['tokens']) for peer in peers)} tokens, log-probabilities differ by up to {worst:.1e}"
    return "DIFFERENT" if found else "equal", "; ".join(found + [text]), worst


def main(arguments=None):
    parser = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("folders", nargs="+", metavar="FOLDER")
    parser.add_argument("--prompt", action="append", help="a prompt's text; may be given several times")
    parser.add_argument("--tokens", type=int, default=16, help="tokens of each answer")
    parser.add_argument("--tolerance", type=float, default=1e-4, help="of log-probabilities")
    parser.add_argument("--threads", type=int, default=1, help="threads of each side")
    parser.add_argument("--timeout", type=float, default=600, help="seconds that serve may take for a folder")
    parser.add_argument("--serve", default="rollout/serve/serve", help="the server's program")
    options = parser.parse_args(arguments)
    options.prompt = options.prompt or PROMPTS
    here = os.environ.get("BUILD_WORKING_DIRECTORY", ".")  # `bazel run` starts programs elsewhere
    folders = [os.path.abspath(os.path.join(here, folder)) for folder in options.folders]
    for folder in folders:
        if not os.path.isdir(folder):
            parser.error(f"{folder} is not a folder")
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(options.threads)
    words, worst = [], 0.0
    for folder in folders:
        word, text, distance = compare(folder, options)
        print(f"{folder}: {word}: {text}", flush=True)
        words.append(word)
        worst = max(worst, distance)
    counts = ", ".join(f"{words.count(word)} {word}" for word in ("equal", "refused", "DIFFERENT", "FAILED"))
    print(f"{len(words)} folders: {counts}; log-probabilities differ by up to {worst:.1e}")
    return int("DIFFERENT" in words or "FAILED" in words)


if __name__ == "__main__":
    raise SystemExit(main())
