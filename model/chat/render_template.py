"""Renders the chat template of a model folder: one JSON object a line in, one a line out.

render_template.py [FOLDER_OF_PACKAGES]. The first line out is {"ready": true}. Then
  {"template": TEXT, "deadline": SECONDS}                                    -> {"ok": true}
  {"messages": [...], "add_generation_prompt": BOOL, "variables": {...}, "deadline": SECONDS}
                                                    -> {"text": TEXT, "dated": whether it holds the time}
or {"error": SENTENCE}. model/chat/template_renderer.cc is the other end.

Templates come with models that others published. They run in Jinja2's sandbox without a loader, and this process
limits its memory, gives up opening files, and is killed by its own timer where a template does not end.
"""

import codecs
import datetime
import json
import resource
import signal
import sys

sys.path[:0] = sys.argv[1:2]

MEMORY_BYTES = 1 << 30  # address space of this process; it starts with about 100 MiB
TEXT_BYTES = 64 << 20  # longest text
TIMER_SECONDS = 2.0  # this process outlives the deadline by this, if the other end is gone


def make_environment(clock):
    """The environment in which `transformers` renders: the same options, tags, filters and functions.

    clock: a list that gets an entry whenever a template asks for the time.
    """
    # Jinja2 imports some of these only where it needs them, when no file can be opened any more.
    import pprint  # noqa: F401
    import textwrap  # noqa: F401
    from jinja2 import constants, debug, ext, nodes, sandbox  # noqa: F401

    class Raised(Exception):
        """A template called raise_exception."""

    class GenerationTag(ext.Extension):
        """{% generation %}...{% endgeneration %} marks an assistant's words; it writes them unchanged."""

        tags = {"generation"}

        def parse(self, parser):
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return nodes.CallBlock(self.call_method("write_body"), [], [], body).set_lineno(line)

        def write_body(self, caller):
            return caller()

    def raise_exception(message):
        raise Raised(message)

    def strftime_now(form):
        clock.append(form)
        return datetime.datetime.now().strftime(form)

    def to_json(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    environment = sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[GenerationTag, ext.loopcontrols])
    environment.filters["tojson"] = to_json
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = strftime_now
    return environment, Raised


def template_line(error):
    """The template's line in which `error` was raised, or None."""
    line = getattr(error, "lineno", None)
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "<template>":
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def describe(error, raised):
    """One sentence: the template's own if it called raise_exception."""
    if isinstance(error, MemoryError):
        return f"needs more than {MEMORY_BYTES >> 20} MiB of memory"
    sentence = str(error)
    if not isinstance(error, raised):
        line = template_line(error)
        where = f"line {line}: " if line else ""
        sentence = f"{where}{type(error).__name__}: {sentence}"
    return sentence.encode(errors="replace").decode()


class Renderer:
    def __init__(self):
        self.clock = []
        self.environment, self.raised = make_environment(self.clock)
        self.template = None

    def compile(self, text):
        self.template = None
        self.template = self.environment.from_string(text)
        return {"ok": True}

    def render(self, request):
        self.clock.clear()
        text = self.template.render(messages=request["messages"], tools=None, documents=None,
                                    add_generation_prompt=request["add_generation_prompt"], **request["variables"])
        size = len(text.encode())  # refuses lone surrogates, which are no text
        if size > TEXT_BYTES:
            return {"error": f"writes {size >> 20} MiB, more than {TEXT_BYTES >> 20} MiB"}
        return {"text": text, "dated": bool(self.clock)}

    def answer(self, line):
        request = json.loads(line)
        signal.setitimer(signal.ITIMER_REAL, request["deadline"] + TIMER_SECONDS)
        try:
            return self.compile(request["template"]) if "template" in request else self.render(request)
        except Exception as error:
            return {"error": describe(error, self.raised)}
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)


def give_up_resources():
    """No file can be opened or written from here on; memory is limited."""
    datetime.datetime.now().strftime("%c")  # reads the time zone's file
    codecs.lookup("unicode-escape")  # for escapes in a template's strings
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))


def main():
    def write(answer):
        sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
        sys.stdout.buffer.flush()

    try:
        renderer = Renderer()
        # Compiles and renders once, so that every module is imported while files can be opened.
        renderer.compile("{% for m in messages %}{{ m | tojson }}{{ m.x | default('') | trim }}{% endfor %}")
        renderer.render({"messages": [{}], "add_generation_prompt": True, "variables": {}})
        give_up_resources()
    except Exception as error:
        write({"error": f"{type(error).__name__}: {error}"})
        return 1
    write({"ready": True})
    for line in sys.stdin.buffer:
        write(renderer.answer(line))
    return 0


if __name__ == "__main__":
    sys.exit(main())
