"""Looks at what a run left behind, without asking Planwright: files, databases, workbooks, commits, the memory's own file.

    outcome.py ROOT OUTCOME.json
"""

import json
import os
import sqlite3
import subprocess
import sys


def read(root, name):
    with open(os.path.join(root, name)) as file:
        return file.read()


def check_file(root, wanted):
    text = read(root, wanted["file"])
    assert wanted.get("is", text) == text, text
    for words in wanted.get("has", []):
        assert words in text, f"{words!r} is not in {text!r}"
    for words in wanted.get("lacks", []):
        assert words not in text, f"{words!r} is in {text!r}"


def check_folder(root, wanted):
    found = sorted(os.listdir(os.path.join(root, wanted["folder"])))
    assert found == wanted["is"], found


def check_json(root, wanted):
    found = json.loads(read(root, wanted["json"]))
    assert found == wanted["is"], found


def check_sqlite(root, wanted):
    rows = sqlite3.connect(os.path.join(root, "rows.db")).execute(wanted["sqlite"]).fetchall()
    assert [list(row) for row in rows] == wanted["rows"], rows


def check_duck(root, wanted):
    import duckdb

    rows = duckdb.connect(os.path.join(root, "sales.duckdb"), read_only=True).execute(wanted["duck"]).fetchall()
    assert [list(row) for row in rows] == wanted["rows"], rows


def check_workbook(root, wanted):
    import openpyxl

    book = openpyxl.load_workbook(os.path.join(root, wanted["workbook"]))
    if "sheets" in wanted:
        assert book.sheetnames == wanted["sheets"], book.sheetnames
    if "rows" in wanted:
        found = [list(row) for row in book[wanted["sheet"]].iter_rows(values_only=True)]
        assert found == wanted["rows"], found
    for cell, value in wanted.get("cells", {}).items():
        found = book[wanted["sheet"]][cell].value
        assert found == value, f"{cell} is {found!r}"


def check_git(root, wanted):
    command = ["git", "-C", os.path.join(root, "files/app"), *wanted["git"]]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    if "is" in wanted:
        assert text.rstrip("\n").split("\n") == (wanted["is"] or [""]), text
    for words in wanted.get("has", []):
        assert words in text, f"{words!r} is not in {text!r}"


def check_memory(root, wanted):
    lines = [json.loads(line) for line in read(root, "memory.jsonl").splitlines() if line]
    entities = {line["name"]: line["observations"] for line in lines if line["type"] == "entity"}
    relations = sorted([line["from"], line["to"]] for line in lines if line["type"] == "relation")
    assert sorted(entities) == wanted["memory"]["entities"], entities
    assert relations == wanted["memory"]["relations"], relations
    for name, observations in wanted["memory"].get("observations", {}).items():
        assert entities[name] == observations, entities[name]


CHECKS = {
    "file": check_file, "folder": check_folder, "json": check_json, "sqlite": check_sqlite, "duck": check_duck,
    "workbook": check_workbook, "git": check_git, "memory": check_memory,
}

if __name__ == "__main__":
    with open(sys.argv[2]) as file:
        every = json.load(file)
    assert every, "nothing is looked at"
    for wanted in every:
        CHECKS[next(iter(wanted))](sys.argv[1], wanted)
