"""OpenAI's own Python client against the server with the mini policy."""

import asyncio
import os
import signal
import subprocess
import unittest

import openai

PROMPT = "torch.softmax(x, dim=1)\nx: (64, 512)\n"
MESSAGES = [{"role": "user", "content": PROMPT}]
KEY = "sk-0123456789abcdef"


def start_server():
    """The process and the address that it prints."""
    process = subprocess.Popen(
        ["rollout/serve/serve", "--model=model/mini", "--device=cpu", "--port=0",
         "--max_num_seqs=8", "--threads=2"],
        env={**os.environ, "TRITONRL_API_KEY": KEY}, stdout=subprocess.PIPE, text=True)
    line = process.stdout.readline()
    assert "http://" in line, line
    return process, next(word for word in line.split() if word.startswith("http://"))


class ClientTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.process, cls.url = start_server()
        cls.client = cls.make_client(KEY)

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.process.send_signal(signal.SIGTERM)
        cls.process.stdout.close()
        assert cls.process.wait(60) == 0

    @classmethod
    def make_client(cls, key):
        return openai.OpenAI(
            base_url=cls.url, api_key=key, max_retries=0, timeout=60,
            http_client=openai.DefaultHttpxClient(trust_env=False))  # no proxy for loopback

    def complete(self, **more):
        settings = {"prompt": PROMPT, "max_tokens": 40, "temperature": 0, **more}
        return self.client.completions.create(model="mini", **settings)

    def chat(self, **more):
        settings = {"messages": MESSAGES, "max_completion_tokens": 40, "temperature": 0, **more}
        return self.client.chat.completions.create(model="mini", **settings)

    def test_models(self):
        self.assertEqual([model.id for model in self.client.models.list()], ["mini"])
        self.assertEqual(self.client.models.retrieve("mini").object, "model")

    def test_completion(self):
        answer = self.complete()
        choice = answer.choices[0]
        self.assertTrue(choice.text)
        self.assertEqual(choice.finish_reason, "length")
        self.assertEqual(answer.usage.completion_tokens, 40)
        self.assertEqual(answer.usage.prompt_tokens, 19)
        self.assertEqual(answer.usage.total_tokens, 59)
        self.assertTrue(answer._request_id)

    def test_chat(self):
        answer = self.chat(logprobs=True, top_logprobs=1)
        choice = answer.choices[0]
        self.assertEqual(choice.message.role, "assistant")
        self.assertTrue(choice.message.content)
        self.assertEqual(answer.usage.completion_tokens, 40)
        shown = choice.logprobs.content
        self.assertEqual(b"".join(bytes(token.bytes) for token in shown).decode(),
                         choice.message.content)
        for token in shown:
            self.assertLessEqual(token.logprob, 0)
            self.assertEqual(token.top_logprobs[0].logprob, token.logprob)

    def test_chat_alternatives(self):
        def tokens(**more):
            return self.chat(logprobs=True, top_logprobs=20, temperature=0.7, seed=1,
                             **more).choices[0].logprobs.content

        shown = tokens()
        for token in shown:
            values = [other.logprob for other in token.top_logprobs]
            self.assertEqual(len(values), 20)
            self.assertEqual(values, sorted(values, reverse=True))
            self.assertLessEqual(token.logprob, values[0])
            same = [other for other in token.top_logprobs if other.bytes == token.bytes]
            self.assertTrue(all(other.logprob == token.logprob for other in same))
        self.assertEqual([token.logprob for token in tokens()], [token.logprob for token in shown])

    def test_the_stream_has_the_log_probabilities_of_the_whole(self):
        whole = self.chat(logprobs=True, top_logprobs=3, temperature=0.7, seed=1).choices[0]
        shown = []
        for chunk in self.chat(logprobs=True, top_logprobs=3, temperature=0.7, seed=1, stream=True):
            if chunk.choices[0].logprobs:
                shown += chunk.choices[0].logprobs.content
        self.assertEqual([token.to_dict() for token in shown],
                         [token.to_dict() for token in whole.logprobs.content])

    def test_log_likelihoods(self):
        """The request of lm-evaluation-harness for contexts with their continuations."""
        ids = self.complete(extra_body={"return_token_ids": True}).choices[0].token_ids
        prompt = self.complete(extra_body={"return_token_ids": True}).choices[0].prompt_token_ids
        greedy, other = prompt + ids[:9], prompt + ids[3:12]
        answer = self.complete(prompt=[greedy, other], max_tokens=1, logprobs=1, echo=True, seed=1234)
        sums, is_greedy = [], []
        for choice in sorted(answer.choices, key=lambda choice: choice.index):
            own = choice.logprobs.token_logprobs[len(prompt):-1]
            top = choice.logprobs.top_logprobs[len(prompt):-1]
            self.assertEqual(len(own), 9)
            sums.append(sum(own))
            is_greedy.append(all(max(best.values()) == value for value, best in zip(own, top)))
        self.assertEqual(is_greedy, [True, False])
        self.assertGreater(sums[0], sums[1])
        alone = self.complete(prompt=greedy, max_tokens=0, logprobs=1, echo=True).choices[0]
        self.assertEqual(sum(alone.logprobs.token_logprobs[len(prompt):]), sums[0])
        self.assertIsNone(alone.logprobs.token_logprobs[0])

    def test_prompt_logprobs(self):
        choice = self.complete(extra_body={"prompt_logprobs": 2, "return_token_ids": True}).choices[0]
        found = choice.prompt_logprobs
        self.assertEqual(len(found), len(choice.prompt_token_ids))
        self.assertIsNone(found[0])
        for token, entry in zip(choice.prompt_token_ids[1:], found[1:]):
            self.assertLessEqual(entry[str(token)]["logprob"], 0)
            self.assertGreaterEqual(entry[str(token)]["rank"], 1)

    def test_penalties_and_biases(self):
        plain = self.complete(extra_body={"return_token_ids": True}).choices[0]
        first = plain.token_ids[0]
        banned = self.complete(logit_bias={str(first): -100}, extra_body={"return_token_ids": True})
        self.assertNotIn(first, banned.choices[0].token_ids)
        forced = self.complete(logit_bias={str(first): 100}, extra_body={"return_token_ids": True})
        self.assertEqual(set(forced.choices[0].token_ids), {first})
        varied = self.complete(presence_penalty=2, frequency_penalty=2,
                               extra_body={"return_token_ids": True, "repetition_penalty": 2})
        self.assertGreater(len(set(varied.choices[0].token_ids)), len(set(plain.token_ids)))
        narrow = self.complete(temperature=1, extra_body={"min_p": 1})
        self.assertEqual(narrow.choices[0].text, plain.text)

    def test_an_assistants_message_without_content(self):
        messages = MESSAGES + [{"role": "assistant", "content": None}] + MESSAGES
        self.assertTrue(self.chat(messages=messages).choices[0].message.content)

    def test_completion_logprobs(self):
        choice = self.complete(logprobs=1).choices[0]
        log_probs = choice.logprobs
        self.assertEqual("".join(log_probs.tokens), choice.text)
        self.assertTrue(all(value <= 0 for value in log_probs.token_logprobs))
        for token, offset in zip(log_probs.tokens, log_probs.text_offset):
            self.assertTrue(choice.text.startswith(token, offset))
        self.assertEqual([list(top) for top in log_probs.top_logprobs],
                         [[token] for token in log_probs.tokens])

    def test_completion_stream(self):
        whole = self.complete(n=2, temperature=1, seed=5, logprobs=0)
        texts, tokens, reasons, usage = ["", ""], [[], []], [None, None], None
        for chunk in self.complete(n=2, temperature=1, seed=5, logprobs=0, stream=True,
                                   stream_options={"include_usage": True}):
            self.assertIsNone(usage, "the usage comes last")
            usage = chunk.usage
            for choice in chunk.choices:
                texts[choice.index] += choice.text
                tokens[choice.index] += choice.logprobs.token_logprobs
                reasons[choice.index] = choice.finish_reason
        self.assertEqual(texts, [choice.text for choice in whole.choices])
        self.assertEqual(tokens, [choice.logprobs.token_logprobs for choice in whole.choices])
        self.assertEqual(reasons, [choice.finish_reason for choice in whole.choices])
        self.assertEqual(usage, whole.usage)

    def test_chat_stream(self):
        whole = self.chat()
        text, roles, reasons, chunks = "", [], [], 0
        for chunk in self.chat(stream=True):
            chunks += 1
            self.assertIsNone(chunk.usage)
            delta = chunk.choices[0].delta
            text += delta.content or ""
            roles += [delta.role] if delta.role else []
            reasons += [chunk.choices[0].finish_reason] if chunk.choices[0].finish_reason else []
        self.assertGreater(chunks, 5)
        self.assertEqual(text, whole.choices[0].message.content)
        self.assertEqual(roles, ["assistant"])
        self.assertEqual(reasons, ["length"])

    def test_the_stream_of_the_helper(self):
        """The client's own collector of a stream ends with the whole answer."""
        with self.client.chat.completions.stream(
                model="mini", messages=MESSAGES, max_completion_tokens=40, temperature=0) as stream:
            for _ in stream:
                pass
        with self.assertRaises(openai.LengthFinishReasonError):
            stream.get_final_completion()

    def test_stop_strings(self):
        text = self.complete().choices[0].text
        stop = text[len(text) // 2:][:4]
        choice = self.complete(stop=["never to be seen", stop]).choices[0]
        self.assertEqual(choice.text, text[:text.index(stop)])
        self.assertEqual(choice.finish_reason, "stop")
        self.assertEqual(choice.stop_reason, stop)
        streamed = "".join(chunk.choices[0].text for chunk in self.complete(stop=stop, stream=True))
        self.assertEqual(streamed, choice.text)

    def test_stop_strings_end_each_answer_alone(self):
        settings = {"n": 8, "temperature": 1, "seed": 2}
        texts = [choice.text for choice in self.complete(**settings).choices]
        choices = self.complete(stop="\n", **settings).choices
        for text, choice in zip(texts, choices):
            self.assertEqual(choice.text, text.split("\n")[0])
            self.assertEqual(choice.finish_reason, "stop" if "\n" in text else "length")
        self.assertGreater(len({len(choice.text) for choice in choices}), 1, "all ended at once")

    def test_stop_tokens(self):
        ids = self.complete(extra_body={"return_token_ids": True}).choices[0].token_ids
        self.assertEqual(len(ids), 40)
        answer = self.complete(
            extra_body={"stop_token_ids": [ids[20]], "return_token_ids": True})
        self.assertEqual(answer.choices[0].token_ids, ids[:ids.index(ids[20]) + 1])
        self.assertEqual(answer.choices[0].finish_reason, "stop")
        self.assertEqual(answer.choices[0].stop_reason, ids[20])
        prompt = answer.choices[0].prompt_token_ids
        self.assertEqual(self.complete(prompt=prompt).choices[0].text, self.complete().choices[0].text)

    def test_seeds(self):
        def draw(seed):
            return [choice.text for choice in self.complete(n=4, temperature=1, seed=seed).choices]

        self.assertEqual(draw(1), draw(1))
        self.assertNotEqual(draw(1), draw(2))
        self.assertGreater(len(set(draw(1))), 1)

    def test_several_prompts(self):
        answer = self.complete(prompt=[PROMPT, "torch.relu(x)\n"], n=2)
        self.assertEqual([choice.index for choice in answer.choices], [0, 1, 2, 3])
        self.assertEqual(answer.choices[1].text, self.complete().choices[0].text)
        self.assertEqual(answer.choices[2].text,
                         self.complete(prompt="torch.relu(x)\n").choices[0].text)

    def test_many_at_once(self):
        """32 requests on connections of their own answer as one alone does."""
        async def run():
            async with openai.AsyncOpenAI(
                    base_url=self.url, api_key=KEY, max_retries=0, timeout=60,
                    http_client=openai.DefaultAsyncHttpxClient(trust_env=False)) as client:
                return await asyncio.gather(*(client.completions.create(
                    model="mini", prompt=PROMPT, max_tokens=40, temperature=1, seed=i % 4)
                    for i in range(32)))

        answers = asyncio.run(run())
        for seed in range(4):
            text = self.complete(temperature=1, seed=seed).choices[0].text
            for answer in answers[seed::4]:
                self.assertEqual(answer.choices[0].text, text)
        self.assertEqual(len({answer.id for answer in answers}), 32)

    def test_errors(self):
        with self.assertRaises(openai.NotFoundError) as caught:
            self.client.completions.create(model="gpt", prompt="x")
        self.assertEqual(caught.exception.code, "model_not_found")
        self.assertIn('"mini"', caught.exception.message)
        with self.assertRaises(openai.NotFoundError):
            self.client.models.retrieve("gpt")
        with self.assertRaises(openai.BadRequestError) as caught:
            self.complete(prompt="x " * 2000)
        self.assertEqual(caught.exception.code, "context_length_exceeded")
        for field, value in {"logprobs": 21, "presence_penalty": 3, "logit_bias": {"x": 1},
                             "max_tokens": 0}.items():
            with self.assertRaises(openai.BadRequestError) as caught:
                self.complete(**{field: value})
            self.assertEqual(caught.exception.param, field)
        with self.assertRaises(openai.BadRequestError) as caught:
            self.chat(logprobs=True, top_logprobs=21)
        self.assertEqual(caught.exception.param, "top_logprobs")
        with self.make_client("sk-wrong") as client:
            with self.assertRaises(openai.AuthenticationError) as caught:
                client.models.list()
        self.assertEqual(caught.exception.code, "invalid_api_key")


if __name__ == "__main__":
    unittest.main()
