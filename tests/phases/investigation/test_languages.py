from __future__ import annotations

import pytest

from phases.investigation.index import languages
from phases.investigation.index.symbols import read_by, symbols_of
from phases.investigation.lines import Text

SOURCES = {
    "A.java": (
        "package a;\nclass A<T> {\n  A() { }\n  void run(int y) { }\n"
        "  static class C { void d() {} }\n}\n",
        {"A", "A.A", "A.run", "A.C", "A.C.d"},
    ),
    "a.go": (
        "package m\nfunc F(a int) {}\ntype S struct { X int }\nfunc (s *S) M() {}\n",
        {"F", "S", "S.M"},
    ),
    "a.c": (
        "struct s {\n int a;\n};\nstatic int *f(int a)\n{ struct s x; return 0; }\nenum e { A };\n",
        {"s", "f", "e"},
    ),
    "a.cpp": (
        "namespace n { class A { public: int z() { return 1; } }; void A::m() {}\n"
        "template<class T> T g(T t) { return t; } }\n",
        {"n", "n.A", "n.A.z", "n.A.m", "n.g"},
    ),
    "A.cs": (
        "namespace N { class A { public int P { get; set; } void M() { } } struct S {} }\n",
        {"N", "N.A", "N.A.P", "N.A.M", "N.S"},
    ),
    "a.rb": (
        "module M\n  class A < B\n    def m\n    end\n    def self.c\n    end\n  end\nend\n",
        {"M", "M.A", "M.A.m", "M.A.c"},
    ),
    "a.php": (
        "<?php\nfunction f() {}\nclass A extends B { public function m() {} }\ntrait T {}\n",
        {"f", "A", "A.m", "T"},
    ),
}


@pytest.mark.parametrize("path", SOURCES)
def test_definitions_are_found_with_the_names_around_them(path: str) -> None:
    source, expected = SOURCES[path]
    found = symbols_of(path, Text(source))
    assert {symbol.qualified for symbol in found} == expected
    assert read_by(path, Text(source)) == "syntax tree"


@pytest.mark.parametrize("path", SOURCES)
def test_without_the_extra_patterns_still_find_the_outer_names(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(languages, "find_spec", lambda name: None)
    source, expected = SOURCES[path]
    assert read_by(path, Text(source)) == "patterns"
    names = {symbol.name for symbol in symbols_of(path, Text(source))}
    assert names & {name.rpartition(".")[2] for name in expected}


def test_lines_of_a_definition_are_its_own() -> None:
    source = "package m\n\nfunc F() {\n\treturn\n}\n\nfunc G() {}\n"
    spans = {s.name: (s.first, s.last) for s in symbols_of("a.go", Text(source))}
    assert spans == {"F": (3, 5), "G": (7, 7)}


def test_broken_source_gives_what_can_be_read() -> None:
    found = symbols_of("a.java", Text("class A { void run( { \n void other() { } \n"))
    assert any(symbol.name == "A" for symbol in found) or found == []
