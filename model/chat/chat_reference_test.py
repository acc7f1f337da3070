"""Compares texts and ids of //model/chat:render with `apply_chat_template` of `transformers`."""

import json
import os
import subprocess
import tempfile
import unittest

import jinja2
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoTokenizer

RENDER = os.path.abspath("model/chat/render")
TEMPLATE_FOLDER = os.environ.get("CHAT_TEMPLATES", "")  # such as templates of published models

TURNS = ("{%- for message in messages %}{{- '<|im_start|>' + message['role'] + '\n' + message['content'] + "
         "'<|im_end|>' + '\n' }}{%- endfor %}{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}"
         "{%- endif %}")
# What templates use, one thing each; none is a published template.
TEMPLATES = {
    "turns": TURNS,
    "named tokens": "{{ bos_token }}|{{ eos_token }}|{{ pad_token }}|{{ unk_token }}|"
                    "{{ additional_special_tokens | default('none') }}",
    "default system": "{% if messages[0].role != 'system' %}<|im_start|>system\nHelp.<|im_end|>\n{% endif %}" + TURNS,
    "blocks": "\n  {% for m in messages %}  \n    {{ m.role }}:\n  {%- if loop.first %} first {% endif -%}  \n "
              "{{ m.content }}\n\t{% endfor %}\n\n",
    "namespace": "{% set ns = namespace(last=-1) %}{% for m in messages %}{% if m.role == 'user' %}"
                 "{% set ns.last = loop.index0 %}{% endif %}{% endfor %}{{ ns.last }}",
    "macro": "{% macro turn(m) %}<{{ m.role }}>{{ caller() }}</{{ m.role }}>{% endmacro %}{% for m in messages %}"
             "{% call turn(m) %}{{ m.content | trim }}{% endcall %}{% endfor %}",
    "generation": "{% for m in messages %}{% generation %}{{ m.content }}{% set x = 1 %}{% endgeneration %}{{ x }}"
                  "{% endfor %}",
    "loop controls": "{% for m in messages %}{% if loop.index0 == 1 %}{% continue %}{% endif %}{{ m.content }}"
                     "{% if loop.index0 == 2 %}{% break %}{% endif %}{% endfor %}",
    "json": "{{ messages | tojson }}{{ messages[0] | tojson(indent=4) }}{{ '<&>' | tojson }}",
    "strings": "{% for m in messages %}{{ m.content.split('e')[-1].lstrip('\n').upper() }}{{ m.content[:3] }}"
               "{{ m.content | length }}{{ m.content | replace('l', '<|im_end|>') }}{% endfor %}",
    "slices": "{% for m in messages[::-1] %}{{ m.role }}{% endfor %}{% for m in messages[1:] %}{{ m.content }}"
              "{% endfor %}",
    "reasoning": "{% for m in messages %}{% if m.reasoning_content is string %}<think>{{ m.reasoning_content }}</think>"
                 "{% endif %}{{ m.content }}{% endfor %}",
    "date": "{{ strftime_now('%Y %B') }}{% if date_string is not defined %} none{% endif %}",
    "defined": "{{ tools is defined }}{{ tools is none }}{{ documents }}{{ enable_thinking is defined }}",
    "numbers": "{{ 7 // 2 }}{{ 7 % 3 }}{{ 2 ** 3 }}{{ 1.0 }}{{ (messages | length) / 2 }}{{ true and none }}",
}
CONVERSATIONS = [
    [{"role": "user", "content": "Hello"}],
    [{"role": "system", "content": " Be brief.\n"},
     {"role": "user", "content": "na\u00efve caf\u00e9 \u4f60\u597d \U0001f600"}],
    [{"role": "user", "content": "1 + 1\n\n"}, {"role": "assistant", "content": "2", "reasoning_content": "hm"},
     {"role": "user", "content": "\tdef f(x):\r\n    return x  "},
     {"role": "assistant", "content": "{{ x }} {% y %} <b>\"'\\"}],
    [{"role": "user", "content": ""}, {"role": "assistant", "content": "<think>\nplan\n</think>\n\ncode"}],
]
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<s>"]


def write_tokenizer(folder, **token):
    vocabulary = {character: i for i, character in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(text, special=True, normalized=False, **token) for text in SPECIAL])
    tokenizer.add_tokens([AddedToken("<think>", normalized=False), AddedToken("</think>", normalized=False)])
    tokenizer.save(os.path.join(folder, "tokenizer.json"))


def write_json(folder, name, value):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        json.dump(value, file)


class ChatReferenceTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.dir = self.folder.name
        write_tokenizer(self.dir)

    def tearDown(self):
        self.folder.cleanup()

    def write_config(self, **fields):
        write_json(self.dir, "tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast", **fields})

    def render(self, requests, *flags):
        """The answers of //model/chat:render, or nothing if it refuses the template."""
        run = subprocess.run([RENDER, f"--model={self.dir}", *flags], text=True, capture_output=True, timeout=120,
                             input="".join(json.dumps(request) + "\n" for request in requests), check=False)
        self.assertIn(run.returncode, (0, 2), run.stderr)
        return [json.loads(line) for line in run.stdout.splitlines()][1:]

    def compare(self, label, may_raise=False, **arguments):
        """Every conversation, with and without the beginning of an answer. Returns how many were rendered."""
        requests = [{"messages": messages, "add_generation_prompt": prompt}
                    for messages in CONVERSATIONS for prompt in (True, False)]
        answers = self.render(requests, *(["--chat_arguments=" + json.dumps(arguments)] if arguments else []))
        tokenizer = AutoTokenizer.from_pretrained(self.dir)
        rendered = 0
        for i, request in enumerate(requests):
            answer = answers[i] if answers else {"error": "refused"}
            try:
                text, ids = (tokenizer.apply_chat_template(request["messages"], tokenize=tokenize, **arguments,
                                                           add_generation_prompt=request["add_generation_prompt"])
                             for tokenize in (False, True))
            except (jinja2.exceptions.TemplateError, TypeError) as error:
                self.assertTrue(may_raise, f"{label}: {error}")
                self.assertIn("error", answer, f"{label}: {error}")
                continue
            self.assertEqual(answer.get("text", answer), text, label)
            self.assertEqual(answer["ids"], ids, label)
            rendered += 1
        return rendered

    def test_what_templates_use(self):
        for label, template in TEMPLATES.items():
            self.write_config(chat_template=template, eos_token="<|im_end|>")
            self.compare(label)

    def test_arguments(self):
        self.write_config(chat_template="{{ a }}{{ b.c }}{% if enable_thinking %}!{% endif %}" + TURNS)
        self.compare("arguments", a="<|im_end|>", b={"c": [1, None]}, enable_thinking=True)

    def test_named_tokens(self):
        shown = TEMPLATES["named tokens"]
        for label, fields in {
            "none": {},
            "objects": {"bos_token": {"__type": "AddedToken", "content": "<s>"}, "eos_token": "<|im_end|>"},
            "more": {"additional_special_tokens": ["<|im_start|>", "<|im_end|>"]},
            "of the class": {"tokenizer_class": "Qwen2Tokenizer"},
            "null": {"tokenizer_class": "Qwen2Tokenizer", "unk_token": None, "pad_token": "<|im_end|>"},
        }.items():
            self.write_config(chat_template=shown, **fields)
            self.compare(label)
        write_json(self.dir, "special_tokens_map.json", {"bos_token": "<s>", "eos_token": {"content": "<|im_start|>"}})
        self.write_config(chat_template=shown, eos_token="<|im_end|>")
        self.compare("the old map")

    def test_which_template(self):
        several = [{"name": "tool_use", "template": "no"}, {"name": "default", "template": "yes" + TURNS}]
        self.write_config(chat_template=several)
        self.compare("a list")
        with open(os.path.join(self.dir, "chat_template.jinja"), "w", encoding="utf-8", newline="") as file:
            file.write("a file\r\n" + TURNS)
        self.compare("a file")
        os.mkdir(os.path.join(self.dir, "additional_chat_templates"))
        with open(os.path.join(self.dir, "additional_chat_templates", "rag.jinja"), "w", encoding="utf-8") as file:
            file.write("no")
        self.compare("a file and another")

    def test_tokens_that_take_white_space(self):
        for token in ({"lstrip": True}, {"rstrip": True}, {"lstrip": True, "rstrip": True}):
            write_tokenizer(self.dir, **token)
            self.write_config(chat_template=TURNS)
            self.compare(str(token))

    def test_a_template_that_raises_has_its_own_message(self):
        self.write_config(chat_template="{% if messages | length > 2 %}{{ raise_exception('Only two!') }}{% endif %}")
        self.assertIn("Only two!", self.render([{"messages": CONVERSATIONS[2]}])[0]["error"])

    @unittest.skipUnless(TEMPLATE_FOLDER, "$CHAT_TEMPLATES names no folder of Jinja files to compare")
    def test_templates_of_a_folder(self):
        for name in sorted(os.listdir(TEMPLATE_FOLDER)):
            with open(os.path.join(TEMPLATE_FOLDER, name), encoding="utf-8") as file:
                self.write_config(chat_template=file.read(), bos_token="<s>", eos_token="<|im_end|>")
            with self.subTest(name):
                rendered = self.compare(name, may_raise=True)
                print(f"{name}: {rendered} of {2 * len(CONVERSATIONS)} conversations rendered, all equal", flush=True)


if __name__ == "__main__":
    unittest.main()
