import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isInWorkspace, isOfClient, pairProblem, parseEndpoint, type Endpoint } from "./endpoint.ts";

const endpointOf = (text: string): Endpoint => {
  const endpoint = parseEndpoint(text);
  assert.ok(endpoint.ok, text);
  return endpoint.value;
};

describe("[TF7] the two ends of a transfer", () => {
  it("are a machine, the workspace, or the program that asks", () => {
    assert.deepEqual(endpointOf("laptop:a/b.txt"), { kind: "node", nodeId: "laptop", path: "a/b.txt" });
    assert.deepEqual(endpointOf("lap.top:/a:b"), { kind: "node", nodeId: "lap.top", path: "/a:b" });
    assert.deepEqual(endpointOf("@:/home/user/a"), { kind: "client", path: "/home/user/a" });
    for (const text of ["gsv:notes/a.md", "gsv:/notes/a.md"]) assert.deepEqual(endpointOf(text), { kind: "workspace", path: "notes/a.md" });
    for (const text of [
      "",
      "laptop",
      "laptop:",
      ":a",
      "@laptop:a",
      "-x:a",
      "gsv:",
      "gsv:../a",
      "gsv:a/../../x",
      "gsv:%2e%2e/x",
      "laptop:a\0b",
      `${"n".repeat(65)}:a`,
    ])
      assert.equal(parseEndpoint(text).ok, false, text);
  });
  it("tell whether a program or the workspace is one of them", () => {
    const texts = ["@:a", "laptop:a", "gsv:a", "gsv:../a", "nothing"];
    assert.deepEqual(texts.map(isOfClient), [true, false, false, false, false]);
    assert.deepEqual(texts.map(isInWorkspace), [false, false, true, false, false]);
  });
  it("are not in one place", () => {
    const problem = (source: string, destination: string): string | undefined => pairProblem(endpointOf(source), endpointOf(destination));
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
