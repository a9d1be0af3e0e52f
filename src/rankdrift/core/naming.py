"""Arguments by name: a wrong name is answered with the right one."""

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from typing import Any, TypeVar, cast

from rankdrift.core.errors import WrongName, did_you_mean

Function = TypeVar("Function", bound=Callable[..., Any])


def names_checked(function: Function) -> Function:
    """The function, which says what its arguments are called to those who mistype one."""
    known = [
        name
        for name, parameter in signature(function).parameters.items()
        if parameter.kind in (Parameter.KEYWORD_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    ]

    @wraps(function)
    def checked(*args: Any, **named: Any) -> Any:
        for name in named.keys() - known:
            raise WrongName(
                f"{function.__name__}() takes no {name!r}.{did_you_mean(name, known)} It takes "
                f"{', '.join(known)}."
            )
        return function(*args, **named)

    return cast(Function, checked)
