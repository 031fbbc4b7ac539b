"""The Common Expression Language, as far as Kubernetes' validation rules use it: parsed and type-checked once, then closures.

program = compile_expression("self.replicas <= self.maxReplicas", {"self": type_of_schema(node)}, "bool")
program.evaluate({"self": obj})
"""

from herder.server.schema.cel.compile import Program, compile_expression
from herder.server.schema.cel.errors import BudgetError, CelError, CompileError, ResultError
from herder.server.schema.cel.types import Type, type_of_schema

__all__ = ["BudgetError", "CelError", "CompileError", "Program", "ResultError", "Type", "compile_expression", "type_of_schema"]
