/** Tools of a JavaScript program, called through a real gateway (rules NJ1 to NJ8). */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { Node, type NodeOptions, type Tool, type ToolContext } from "@gsv/node";
import { noted, refused, until, WireError, withGateway } from "./support.ts";

const ANY = { type: "object" } as const;
const tool = (name: string, run: Tool["run"], more: Partial<Tool> = {}): Tool => ({
  name,
  description: `The tool ${name} of a test.`,
  inputSchema: ANY,
  run,
  ...more,
});
const failed = async (call: Promise<unknown>): Promise<WireError> => {
  try {
    throw new Error(`should fail: ${JSON.stringify(await call)}`);
  } catch (error) {
    assert(error instanceof WireError, String(error));
    return error;
  }
};
/** A promise with its ends. */
const gate = <T = void>() => Promise.withResolvers<T>();

describe("tools of a program", () => {
  const scene = withGateway();

  it("[NJ1] [NJ3] a function gives the result of its call: a text, JSON or blocks", async () => {
    const seen: unknown[] = [];
    const node = scene.open(await scene.options("results"));
    const events = noted(node);
    node
      .tool(
        tool("Echo", (args, { callId }) => {
          seen.push(args, callId);
          return `${String(args["text"])}, ${callId.length > 0}`;
        }),
      )
      .tool(tool("Data", async () => ({ on: true, rooms: ["kitchen"], level: 0.5 })))
      .tool(tool("Blocks", () => ({ content: [{ type: "text", text: "a" }] })))
      .tool(tool("Nothing", () => undefined));
    await node.connect();
    assert.equal(await scene.call("results__Echo", { text: "größer" }), "größer, true");
    assert.deepEqual(seen[0], { text: "größer" });
    assert.deepEqual(await scene.call("results__Data"), { on: true, rooms: ["kitchen"], level: 0.5 });
    assert.deepEqual(await scene.call("results__Blocks"), { content: [{ type: "text", text: "a" }] });
    assert.equal((await scene.call("results__Nothing")) ?? null, null);
    const [first, second, third] = events;
    assert.equal(first?.event, "connected");
    assert.deepEqual(second, { event: "call", value: { callId: seen[1], tool: "Echo", phase: "started" } });
    assert(third !== undefined);
    const { tookMs, ...ended } = third.value as { tookMs: number };
    assert.deepEqual(ended, { callId: seen[1], tool: "Echo", phase: "ended", outcome: "ok" });
    assert(Number.isInteger(tookMs));
  });

  it("[NJ3] what a function throws is the error of its call, without its stack", async () => {
    const node = scene.open(await scene.options("throws"));
    const circle: Record<string, unknown> = {};
    circle["me"] = circle;
    node
      .tool(
        tool("Throws", () => {
          throw new Error("the lamp is not there");
        }),
      )
      .tool(tool("Rejects", async () => Promise.reject("only words")))
      .tool(
        tool("Odd", () => {
          throw Object.create(null);
        }),
      )
      .tool(tool("Circle", () => circle as never));
    await node.connect();
    const error = await failed(scene.call("throws__Throws"));
    assert.equal(error.reason, "tool.failed");
    assert.match(error.message, /the lamp is not there/);
    assert.doesNotMatch(error.message, /node\.test|at /);
    assert.match((await failed(scene.call("throws__Rejects"))).message, /only words/);
    assert.match((await failed(scene.call("throws__Odd"))).message, /did not say why/);
    assert.match((await failed(scene.call("throws__Circle"))).message, /has run, and its result can't be written as JSON/);
  });

  it("[NJ4] arguments that do not fit the schema never reach the function", async () => {
    let runs = 0;
    const node = scene.open(await scene.options("checked"));
    const inputSchema = {
      type: "object",
      properties: { level: { type: "integer", minimum: 0, maximum: 100 } },
      required: ["level"],
      additionalProperties: false,
    } as const;
    node.tool(
      tool(
        "Level",
        ({ level }) => {
          runs += 1;
          return level ?? null;
        },
        { inputSchema },
      ),
    );
    await node.connect();
    for (const args of [{}, { level: "5" }, { level: 101 }, { level: 1.5 }, { level: 5, more: 1 }, { level: null }]) {
      const error = await failed(scene.call("checked__Level", args));
      assert.equal(error.reason, "tool.bad_args", error.message);
    }
    assert.equal(runs, 0);
    assert.equal(await scene.call("checked__Level", { level: 5 }), 5);
    assert.equal(runs, 1);
  });

  it("[NJ5] the signal of a function fires at the deadline, and a function that ends then has the outcome timeout", async () => {
    const started = gate<ToolContext>();
    const why = gate<unknown>();
    const node = scene.open(await scene.options("cancels"));
    const events = noted(node);
    node.tool(
      tool("Wait", (_args, context) => {
        started.resolve(context);
        return new Promise((_done, fail) => {
          context.signal.addEventListener("abort", () => {
            why.resolve(context.signal.reason);
            fail(context.signal.reason);
          });
        });
      }),
    );
    await node.connect();
    const call = failed(scene.call("cancels__Wait", {}, { timeoutMs: 1500 }));
    assert.equal((await started.promise).signal.aborted, false);
    assert.equal((await call).reason, "tool.timeout");
    assert.equal(String(((await why.promise) as { reason: string }).reason), "tool.timeout");
    const ended = await until("the call has ended", () => events.find(({ value }) => (value as { phase?: string })?.phase === "ended"));
    assert.equal((ended.value as { outcome: string }).outcome, "timeout");
  });

  it("[NJ5] a promise that never ends has an unknown outcome at its deadline, and a tool that may repeat a timeout", async () => {
    const node = scene.open(await scene.options("hangs"));
    let starts = 0;
    const never = () => {
      starts += 1;
      return new Promise<string>(() => undefined);
    };
    node.tool(tool("Once", never)).tool(tool("Again", never, { idempotent: true }));
    await node.connect();
    const [once, again] = await Promise.all([
      failed(scene.call("hangs__Once", {}, { timeoutMs: 800 })),
      failed(scene.call("hangs__Again", {}, { timeoutMs: 800 })),
    ]);
    assert.equal(once.reason, "tool.outcome_unknown");
    assert.equal(again.reason, "tool.timeout");
    assert.equal(starts, 2);
  });

  it("[NJ6] a result that is too long loses its middle, and one that can't be cut is an error", async () => {
    const node = scene.open(await scene.options("large"));
    node.tool(tool("Long", () => "x".repeat(3_000_000))).tool(tool("Many", () => Array.from({ length: 300_000 }, (_, at) => `line ${at}`)));
    await node.connect();
    const text = String(await scene.call("large__Long"));
    assert(text.length < 1_048_576 && text.includes("bytes left out by the node"), String(text.length));
    assert.equal((await failed(scene.call("large__Many"))).reason, "tool.too_large");
  });

  it("[NJ6] eight functions run at once, and the next ones wait", async () => {
    const node = scene.open(await scene.options("many"));
    const open = gate();
    let running = 0;
    let most = 0;
    node.tool(
      tool("Slow", async () => {
        running += 1;
        most = Math.max(most, running);
        await open.promise;
        running -= 1;
        return "done";
      }),
    );
    await node.connect();
    const calls = Array.from({ length: 10 }, () => scene.call("many__Slow"));
    await until("eight run", () => running === 8);
    open.resolve();
    assert.deepEqual(
      await Promise.all(calls),
      Array.from({ length: 10 }, () => "done"),
    );
    assert.equal(most, 8);
  });

  it("[NJ7] a tool can't have the name of a tool of GSV, a second `__`, or the name of another", async () => {
    const node = new Node({ ...scene.folders("names"), id: "names", url: scene.machine.url });
    const run = (): string => "";
    node.tool(tool("Lights", run));
    for (const [given, words] of [
      [tool("Lights", run), /another tool has this name/],
      [tool("a__b", run), /separates a machine from its tools/],
      [tool("Bash", run), /belongs to a tool of GSV/],
      [tool("Read", run), /belongs to a tool of GSV/],
      [tool("9", run), /first a letter/],
      [tool("A", run, { inputSchema: { type: "nothing" as "object" } }), /must be `object`/],
      [tool("A", run, { inputSchema: { type: "object", properties: { a: { type: "nothing" } } } }), /not valid JSON Schema/],
      [tool("A", run, { inputSchema: { type: "object", $ref: "https://example.org/a.json" } }), /not valid JSON Schema/],
      [tool("A", run, { inputSchema: undefined as never }), /must be JSON/],
      [tool("A", run, { timeoutMs: 86_400_001 }), /from 1 to/],
      [tool("A", run, { timeoutMs: 0.5 }), /whole number/],
      [tool("A", run, { description: " " }), /description/],
      [tool("A", "text" as never), /must be a function/],
      [{ ...tool("A", run), policyClass: "read_private" } as Tool, /has no `policyClass`/],
      [null as never, /must be an object/],
    ] as const) {
      const error = await refused(() => node.tool(given));
      assert.equal(error.reason, "node.bad_tool");
      assert.match(error.message, words);
      assert(error.hint !== undefined && error.hint !== "");
    }
    for (let at = 1; at < 64; at++) node.tool(tool(`T${at}`, run));
    assert.match((await refused(() => node.tool(tool("More", run)))).message, /at most 64/);
  });

  it("[NJ7] tools are registered before the node connects", async () => {
    const node = scene.open(await scene.options("late"));
    await node.connect();
    assert.match((await refused(() => node.tool(tool("A", () => "")))).message, /has started/);
  });

  it("[NJ8] the policy asks about a function, whatever its name and its arguments say", async () => {
    const node = scene.open(await scene.options("asks"));
    let runs = 0;
    const count = (): string => {
      runs += 1;
      return "ran";
    };
    node.tool(tool("ReadOnly", count, { idempotent: true })).tool(tool("Shell", count));
    await node.connect();
    await scene.admin.call("config.set", { path: "toolApproval.mode", value: "auto" });
    const asked = await failed(scene.call("asks__ReadOnly", { path: "a.txt" }));
    assert.equal(asked.reason, "policy.denied");
    assert.equal((await failed(scene.call("asks__Shell", { command: "uname" }))).reason, "policy.denied");
    assert.equal(runs, 0);
    await scene.admin.call("config.set", {
      path: "toolApproval.rules",
      value: [{ id: "lamp", tool: "asks__ReadOnly", decision: "allow" }],
    });
    assert.equal(await scene.call("asks__ReadOnly"), "ran");
    await scene.admin.call("config.unset", { path: "toolApproval" });
  });
});

describe("a node of a program", () => {
  const scene = withGateway();

  it("[NJ1] options that are not valid are refused with the option's name", async () => {
    const good: NodeOptions = { ...scene.folders("good"), id: "good", url: scene.machine.url };
    for (const [given, words] of [
      [undefined, /must be an object/],
      [{ ...good, url: 5 }, /`url`/],
      [{ ...good, id: "" }, /`id`/],
      [{ ...good, workspace: "relative" }, /`workspace` must be an absolute path/],
      [{ ...good, stateDir: undefined }, /`stateDir`/],
      [{ ...good, token: 1 }, /`token`/],
      [{ ...good, tokn: "x" }, /no option `tokn`/],
      [{ ...good, allowOutside: "yes" }, /`allowOutside`/],
      [{ ...good, tools: { rust: "some" } }, /`tools.rust`/],
      [{ ...good, tools: { rust: ["Raed"] } }, /no tool "Raed"/],
      [{ ...good, tools: { js: [] } }, /no option `js`/],
    ] as const) {
      const error = await refused(() => new Node(given as never));
      assert.equal(error.reason, "node.bad_options");
      assert.match(error.message, words);
    }
    assert.equal((await refused(new Node({ ...good, id: "a b" }).connect())).reason, "node.bad_options");
    assert.equal((await refused(new Node({ ...good, url: "no address" }).connect())).reason, "link.bad_url");
    const overlapping = new Node({ ...good, workspace: good.stateDir });
    assert.equal((await refused(overlapping.connect())).reason, "node.bad_options");
    assert.equal((await refused(new Node({ ...good, workspace: "/nonexistent" }).connect())).reason, "node.cannot_start");
  });

  it("[NJ1] a wrong token is refused with its reason, and no error or log has it", async () => {
    const token = `gsv_node_wrong_${"0123456789abcdef".repeat(4)}`;
    const options = { ...scene.folders("wrong"), id: "wrong", url: scene.machine.url, token };
    const node = scene.open(options);
    const seen = noted(node);
    const lines: string[] = [];
    node.on("log", ({ text }) => lines.push(text));
    const closed = once(node, "closed");
    const error = await refused(node.connect());
    assert.equal(error.reason, "auth.required");
    assert.match(error.hint ?? "", /gsv/);
    await closed;
    assert.deepEqual(
      seen.map(({ event }) => event).filter((event) => event !== "disconnected"),
      ["closed"],
    );
    const all =
      JSON.stringify([seen, lines, error.message, error.stack, error.hint]) + readFileSync(join(options.stateDir, "node.log"), "utf8");
    assert(!all.includes(token) && !all.includes("0123456789abcdef0123"), all);
    assert.equal((await refused(node.connect())).reason, "node.closed");
    const bound = scene.open({ ...(await scene.options("someone")), id: "other" });
    assert.equal((await refused(bound.connect())).reason, "auth.bound");
  });

  it("[NJ1] a newer node with the same id takes over, and the older one says so", async () => {
    const token = await scene.token("twin");
    const open = (folders: string) => scene.open({ ...scene.folders(folders), id: "twin", url: scene.machine.url, token });
    const [older, newer] = [open("twin-a"), open("twin-b")];
    await older.tool(tool("Who", () => "older")).connect();
    const error = once(older, "error");
    const closed = once(older, "closed");
    await newer.tool(tool("Who", () => "newer")).connect();
    assert.equal(((await error)[0] as { reason: string }).reason, "link.replaced");
    await closed;
    assert.equal(await scene.call("twin__Who"), "newer");
  });

  it("[NJ1] two nodes can't share a state folder", async () => {
    const options = await scene.options("single");
    await scene.open(options).connect();
    const second = scene.open(options);
    assert.equal((await refused(second.connect())).reason, "node.cannot_start");
  });

  it("[NJ1] a node connects again when its gateway was gone, and its tools are called again", async () => {
    const node = scene.open(await scene.options("returns"));
    const seen = noted(node);
    node.tool(tool("Hello", () => "hello"));
    await node.connect();
    const gone = once(node, "disconnected");
    await scene.machine.killWorkerd();
    const [{ retryInMs }] = (await gone) as [{ retryInMs?: number }];
    assert(retryInMs !== undefined);
    await until("connected again", () => seen.filter(({ event }) => event === "connected").length === 2);
    await scene.again();
    assert.equal(await scene.call("returns__Hello"), "hello");
  });

  it("[NJ2] only the tools of GSV that the program names are offered, and files are copied only with Read and Write", async () => {
    const none = scene.open(await scene.options("none"));
    const two = scene.open(await scene.options("two", { tools: { rust: ["Read", "Grep"] } }));
    const all = scene.open(await scene.options("every", { tools: { rust: "all" } }));
    none.tool(tool("Own", () => ""));
    await Promise.all([none.connect(), two.connect(), all.connect()]);
    const { tools } = (await scene.admin.call("tools.list")) as { tools: { name: string }[] };
    const names = tools.map(({ name }) => name).filter((name) => /^(?:none|two|every)__/.test(name));
    const rust = ["Bash", "Delete", "Edit", "Glob", "Grep", "Process", "Read", "Write"];
    assert.deepEqual(names.sort(), [...rust.map((name) => `every__${name}`), "none__Own", "two__Grep", "two__Read"].sort());
    const { nodes } = (await scene.admin.call("nodes.list")) as { nodes: { nodeId: string; hostCapabilities: string[] }[] };
    const capabilities = (id: string): string[] => nodes.find(({ nodeId }) => nodeId === id)?.hostCapabilities ?? [];
    assert.deepEqual(capabilities("none"), ["filesystem.confined"]);
    assert(!capabilities("two").includes("filesystem.transfer"));
    assert(capabilities("every").includes("filesystem.transfer"));
    writeFileSync(join(scene.folders("two").workspace, "a.txt"), "text\n");
    assert.match(JSON.stringify(await scene.call("two__Read", { path: "a.txt" })), /text/);
  });
});
