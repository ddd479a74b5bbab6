/** GSV's tools, driven through the package and compared with the contract (rule NJ13). */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import { RUST_TOOLS } from "@gsv/node";
import { isErrorReason } from "../../../protocol/gen/errors.ts";
import { policyClassOf } from "../../../protocol/gen/lookups.ts";
import type { ToolDefinition } from "../../../protocol/gen/types.ts";
import { checkToolDefinition, RESULT_VALIDATORS } from "../../../protocol/gen/validators/index.ts";
import { type Json, until, WireError, withGateway } from "./support.ts";

describe("GSV's tools through the package", () => {
  const scene = withGateway();
  const file = (...path: string[]): string => join(scene.folders("box").workspace, ...path);
  let definitions: readonly ToolDefinition[] = [];

  before(async () => {
    await scene.open(await scene.options("box", { tools: { rust: "all" } })).connect();
    await scene.admin.call("config.set", { path: "toolApproval.defaultDecision", value: "allow" });
    const { tools } = (await scene.admin.call("tools.list")) as { tools: ToolDefinition[] };
    definitions = tools.filter(({ name }) => name.startsWith("box__"));
  });

  const call = async (tool: string, args: Json): Promise<Json> => {
    const answer = await scene.admin.call("tool.invoke", { tool: `box__${tool}`, args });
    assert(RESULT_VALIDATORS["tool.invoke"](answer), JSON.stringify(answer));
    return answer["result"] as Json;
  };
  /** The reason of a refusal, which must be a row of the table. */
  const reason = async (tool: string, args: Json): Promise<string> => {
    try {
      throw new Error(`should fail: ${JSON.stringify(await call(tool, args))}`);
    } catch (error) {
      assert(error instanceof WireError, String(error));
      assert(error.reason !== undefined && isErrorReason(error.reason), error.message);
      assert(error.message.length > 20, error.message);
      return error.reason;
    }
  };

  it("[NJ13] the node offers exactly the tools that the contract knows, and each definition fits it", () => {
    assert.deepEqual(definitions.map(({ name }) => name.slice("box__".length)).sort(), [...RUST_TOOLS].sort());
    for (const definition of definitions) {
      assert(checkToolDefinition(definition), definition.name);
      const name = definition.name.slice("box__".length);
      assert.equal(definition.idempotent === true, policyClassOf(name).startsWith("read"), `${name} may run again only when it reads`);
      const { type, properties, required } = definition.inputSchema as { type: string; properties: Json; required?: string[] };
      assert.equal(type, "object");
      for (const field of required ?? []) assert(Object.hasOwn(properties, field), `${name} requires ${field}, and does not describe it`);
    }
  });

  it("[NJ13] a required argument that is missing or of a wrong type is refused by every tool", async () => {
    for (const { name, inputSchema } of definitions) {
      const tool = name.slice("box__".length);
      const { properties, required = [] } = inputSchema as { properties: Record<string, { type?: string }>; required?: string[] };
      assert(required.length > 0, tool);
      assert.equal(await reason(tool, {}), "tool.bad_args", tool);
      for (const field of required) {
        const wrong = Object.fromEntries(required.map((it) => [it, properties[it]?.type === "string" ? "x" : 1]));
        assert.equal(await reason(tool, { ...wrong, [field]: { odd: true } }), "tool.bad_args", `${tool}.${field}`);
      }
    }
  });

  it("[NJ13] Write, Read and Edit", async () => {
    const written = await call("Write", { path: "notes/größe.txt", content: "one\ntwo\nthree\n" });
    assert.equal(readFileSync(file("notes", "größe.txt"), "utf8"), "one\ntwo\nthree\n");
    assert.equal(written["path"], "notes/größe.txt", JSON.stringify(written));
    const read = await call("Read", { path: "notes/größe.txt", offset: 1, limit: 1 });
    assert.match(String(read["content"]), /two/);
    assert.doesNotMatch(String(read["content"]), /three/);
    await call("Edit", { path: "notes/größe.txt", oldString: "two", newString: "2" });
    assert.equal(readFileSync(file("notes", "größe.txt"), "utf8"), "one\n2\nthree\n");
    assert.equal(await reason("Edit", { path: "notes/größe.txt", oldString: "two", newString: "2" }), "edit.no_match");
    writeFileSync(file("twice.txt"), "a a");
    assert.equal(await reason("Edit", { path: "twice.txt", oldString: "a", newString: "b" }), "edit.ambiguous");
    assert.equal(await reason("Read", { path: "nothing.txt" }), "path.not_found");
    assert.equal(await reason("Read", { path: "notes" }), "path.not_a_file");
    assert.equal(await reason("Read", { path: "/etc/passwd" }), "path.outside_workspace");
    symlinkSync("/etc/passwd", file("link"));
    assert.equal(await reason("Read", { path: "link" }), "path.outside_workspace");
    assert.equal(await reason("Write", { path: "../out.txt", content: "" }), "path.outside_workspace");
    assert(!existsSync(file("..", "out.txt")));
    writeFileSync(file("binary"), Buffer.from([0, 1, 2, 255]));
    assert.equal(await reason("Read", { path: "binary" }), "file.binary");
  });

  it("[NJ13] an image is read as blocks", async () => {
    const png = Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII=", "base64");
    writeFileSync(file("dot.png"), png);
    const { content } = (await call("Read", { path: "dot.png" })) as { content: { type: string; data?: string; mimeType?: string }[] };
    const image = content.find(({ type }) => type === "image");
    assert.deepEqual([image?.mimeType, image?.data], ["image/png", png.toString("base64")]);
  });

  it("[NJ13] Glob and Grep", async () => {
    mkdirSync(file("src", "deep"), { recursive: true });
    writeFileSync(file("src", "a.ts"), "const lamp = 1;\n");
    writeFileSync(file("src", "deep", "b.ts"), "const other = 2;\n");
    const globbed = await call("Glob", { pattern: "src/**/*.ts" });
    assert.deepEqual((globbed["matches"] as string[]).sort(), ["src/a.ts", "src/deep/b.ts"], JSON.stringify(globbed));
    const found = await call("Grep", { pattern: "const (lamp|other)", path: "src" });
    assert.deepEqual(
      (found["matches"] as { path: string; line: number; content: string }[]).map(({ path, line }) => [path, line]).sort(),
      [
        ["src/a.ts", 1],
        ["src/deep/b.ts", 1],
      ],
      JSON.stringify(found),
    );
    assert.equal(await reason("Grep", { pattern: "(" }), "tool.bad_args");
    assert.equal(await reason("Glob", { pattern: "[" }), "tool.bad_args");
  });

  it("[NJ13] Bash and Process: output, exit status, a folder, a limit, and a command in the background", async () => {
    const ran = await call("Bash", { command: "printf 'größer'; exit 3", workdir: "src" });
    assert.deepEqual([ran["output"], ran["exitCode"]], ["größer", 3], JSON.stringify(ran));
    const late = await call("Bash", { command: "sleep 60", timeout: 300 });
    assert.equal(late["timedOut"], true, JSON.stringify(late));
    const begun = await call("Bash", { command: "read line; echo got $line", background: true });
    assert.equal(begun["status"], "running", JSON.stringify(begun));
    const sessionId = begun["sessionId"];
    await call("Process", { action: "submit", sessionId, data: "it" });
    await until("the command has its input", async () => (await call("Process", { action: "poll", sessionId }))["status"] !== "running");
    assert.equal((await call("Process", { action: "log", sessionId }))["output"], "got it\n");
    assert.equal(await reason("Process", { action: "poll", sessionId: "none" }), "process.unknown");
  });

  it("[NJ13] Delete removes one file", async () => {
    writeFileSync(file("gone.txt"), "x");
    await call("Delete", { path: "gone.txt" });
    assert(!existsSync(file("gone.txt")));
    assert.equal(await reason("Delete", { path: "gone.txt" }), "path.not_found");
  });
});
