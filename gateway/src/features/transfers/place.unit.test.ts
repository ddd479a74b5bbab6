import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isOfClient, pairProblem, parsePlace, type Place } from "./place.ts";

const placeOf = (text: string): Place => {
  const place = parsePlace(text);
  assert.ok(place.ok, text);
  return place.value;
};

describe("the two ends of a transfer", () => {
  it("are a machine, the workspace, or the program that asks", () => {
    assert.deepEqual(placeOf("laptop:a/b.txt"), { kind: "node", nodeId: "laptop", path: "a/b.txt" });
    assert.deepEqual(placeOf("@:/home/user/a"), { kind: "client", path: "/home/user/a" });
    for (const text of ["gsv:notes/a.md", "gsv:/notes/a.md"]) assert.deepEqual(placeOf(text), { kind: "workspace", path: "notes/a.md" });
    for (const text of ["", "laptop", "laptop:", ":a", "@laptop:a", "-x:a", "gsv:../a", "laptop:a\0b", `${"n".repeat(65)}:a`])
      assert.equal(parsePlace(text).ok, false, text);
  });
  it("tell whether a program is one of them", () => {
    assert.deepEqual(["@:a", "laptop:a", "gsv:a", "nothing"].map(isOfClient), [true, false, false, false]);
  });
  it("are not in one place", () => {
    const problem = (source: string, destination: string): string | undefined => pairProblem(placeOf(source), placeOf(destination));
    assert.match(problem("gsv:a", "gsv:b") ?? "", /Both ends are in the workspace/);
    assert.match(problem("@:a", "@:b") ?? "", /Both ends are on this machine/);
    assert.match(problem("laptop:a", "laptop:b") ?? "", /Both ends are on `laptop`/);
    for (const [source, destination] of [
      ["laptop:a", "nas:b"],
      ["laptop:a", "gsv:b"],
      ["gsv:a", "laptop:b"],
      ["@:a", "laptop:b"],
      ["gsv:a", "@:b"],
    ] as const)
      assert.equal(problem(source, destination), undefined, `${source} ${destination}`);
  });
});
