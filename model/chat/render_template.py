"""Renders the chat template of a model folder: requests on standard input, replies on standard output.

render_template.py [FOLDER_OF_PACKAGES]. Each is a line with a JSON object. The first reply is {"ready": true}. Then
  {"template": TEXT, "deadline": SECONDS}                                          -> {"ok": true}
  {"messages": [{"role": TEXT, "content": SIZE, "reasoning_content": SIZE or absent}, ...],
   "renderings": [[MESSAGES, ADD_GENERATION_PROMPT], ...], "variables": {...}, "deadline": SECONDS}
                                                     -> {"text": SIZE, "dated": whether it holds the time}
  {"names": [NAME, ...], "deadline": SECONDS}  -> {"unknown": the names that are no variables of the template}
or {"error": SENTENCE}. Sizes are bytes of UTF-8 that follow the line: of a request all contents in order, of a reply
its text. Each rendering, of the first MESSAGES messages, has a reply; after an error the request's further renderings
are skipped. The deadline is that of each rendering. model/chat/template_process.cc is the other end.

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
    from jinja2 import constants, debug, ext, meta, nodes, sandbox  # noqa: F401

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
        self.text = ""
        self.template = None

    def compile(self, text):
        self.template = None
        self.template = self.environment.from_string(text)
        self.text = text
        return {"ok": True}, b""

    def unknown(self, names):
        from jinja2 import meta
        known = meta.find_undeclared_variables(self.environment.parse(self.text))
        known.update(self.environment.globals)  # a variable hides such a function
        return {"unknown": [name for name in names if name not in known]}, b""

    def render(self, messages, add_generation_prompt, variables):
        self.clock.clear()
        text = self.template.render(messages=messages, tools=None, documents=None,
                                    add_generation_prompt=add_generation_prompt, **variables)
        encoded = text.encode()  # refuses lone surrogates, which are not text
        if len(encoded) > TEXT_BYTES:
            return {"error": f"writes {len(encoded) >> 20} MiB, more than {TEXT_BYTES >> 20} MiB"}, b""
        return {"text": len(encoded), "dated": bool(self.clock)}, encoded

    def within(self, deadline, work, *arguments):
        """What `work` returns, or its error as a reply; ends this process if that takes too long."""
        signal.setitimer(signal.ITIMER_REAL, deadline + TIMER_SECONDS)
        try:
            return work(*arguments)
        except Exception as error:
            return {"error": describe(error, self.raised)}, b""
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def answers(self, request):
        """Yields each reply when it is ready, as an object and the bytes that follow it."""
        if "template" in request:
            yield self.within(request["deadline"], self.compile, request["template"])
            return
        if "names" in request:
            yield self.within(request["deadline"], self.unknown, request["names"])
            return
        for count, add_generation_prompt in request["renderings"]:
            head, text = self.within(request["deadline"], self.render, request["messages"][:count],
                                     add_generation_prompt, request["variables"])
            yield head, text
            if "error" in head:
                return


def read_request(stream):
    """The next request with its contents as texts; None at the end."""
    line = stream.readline()
    if not line:
        return None
    request = json.loads(line)
    for message in request.get("messages", ()):
        for field in ("content", "reasoning_content"):
            if field in message:
                message[field] = stream.read(message[field]).decode(errors="replace")
    return request


def give_up_resources():
    """No file can be opened or written from here on; memory is limited."""
    datetime.datetime.now().strftime("%c")  # reads the time zone's file
    codecs.lookup("unicode-escape")  # for escapes in a template's strings
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))


def main():
    def write(head, text=b""):
        sys.stdout.buffer.write(b"%s\n%s" % (json.dumps(head).encode(), text))
        sys.stdout.buffer.flush()

    try:
        renderer = Renderer()
        # Compiles and renders once, so that every module is imported while files can be opened.
        renderer.compile("{% for m in messages %}{{ m | tojson }}{{ m.x | default('') | trim }}{% endfor %}")
        renderer.render([{}], True, {})
        renderer.unknown(["x"])
        give_up_resources()
    except Exception as error:
        write({"error": f"{type(error).__name__}: {error}"})
        return 1
    write({"ready": True})
    while (request := read_request(sys.stdin.buffer)) is not None:
        for head, text in renderer.answers(request):
            write(head, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
