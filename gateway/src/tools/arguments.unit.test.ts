import assert from "node:assert/strict";
import { test } from "node:test";
import { LIMITS } from "../../../protocol/gen/limits.ts";
import { INVALID_ARGUMENTS } from "../models/invalid-arguments.ts";
import { fileNames, flag, integer, optional, readArguments, text } from "./arguments.ts";

const fields = { name: text(5), count: optional(integer(1, 3)), all: optional(flag), files: optional(fileNames) };
const read = (args: Readonly<Record<string, unknown>>): unknown => {
  const found = readArguments(args, fields);
  return found.ok ? found.value : found.error.message;
};
const NAMED = { name: "a", count: undefined, all: undefined, files: undefined };

test("[P19] arguments of a tool are read as they are meant, and a wrong one is named with what it must be", () => {
  assert.deepEqual(read({ name: "a" }), NAMED);
  assert.deepEqual(read({ name: "a", count: "3", all: "true", files: "x.md" }), { name: "a", count: 3, all: true, files: ["x.md"] });
  assert.deepEqual(read({ name: "a", all: "false", files: ["x", "media:1"] }), { ...NAMED, all: false, files: ["x", "media:1"] });
  const most = Array.from({ length: LIMITS.attachments }, () => "x".repeat(1_024));
  assert.deepEqual(read({ name: "12345", count: 1, all: false, files: most }), { name: "12345", count: 1, all: false, files: most });
  assert.deepEqual(read({ name: "a", count: null, all: null }), NAMED);
  for (const [args, message] of [
    [{}, /`name` is missing/],
    [{ name: 5 }, /`name` must be a string/],
    [{ name: ["a"] }, /`name` must be a string/],
    [{ name: "123456" }, /`name` is longer than 5 characters/],
    [{ name: "a", count: 0 }, /`count` must be a whole number from 1 to 3/],
    [{ name: "a", count: 4 }, /`count` must be a whole number from 1 to 3/],
    [{ name: "a", count: 1.5 }, /`count` must be a whole number from 1 to 3/],
    [{ name: "a", all: "yes" }, /`all` must be true or false/],
    [{ name: "a", files: [""] }, /`files` must be a list/],
    [{ name: "a", files: ["x".repeat(1_025)] }, /`files` must be a list/],
    [{ name: "a", files: Array.from({ length: LIMITS.attachments + 1 }, () => "x") }, /`files` must be a list/],
  ] as const)
    assert.match(String(read(args)), message);
});
test("[P5] arguments that were no JSON object are read as none", () => {
  assert.match(String(read({ name: "a", [INVALID_ARGUMENTS]: "{" })), /^The arguments are not a JSON object\./);
});
