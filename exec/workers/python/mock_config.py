"""Configurations of KernelBook's tasks, which a model's constructor takes in place of its project's own."""


class MockConfig:
    """Fields that are read as attributes and as items."""

    def __init__(self, fields):
        self.__dict__.update(fields)

    def __getitem__(self, name):
        return self.__dict__[name]

    def __contains__(self, name):
        return name in self.__dict__

    def __iter__(self):
        return iter(self.__dict__)

    def __len__(self):
        return len(self.__dict__)

    def get(self, name, default=None):
        return self.__dict__.get(name, default)

    def keys(self):
        return self.__dict__.keys()

    def values(self):
        return self.__dict__.values()

    def items(self):
        return self.__dict__.items()

    def __repr__(self):
        return f"_mock_config({', '.join(f'{name}={value!r}' for name, value in self.__dict__.items())})"
