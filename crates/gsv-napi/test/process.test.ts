/** A program with a node as a process: it is killed, it is busy, it closes (rules NJ5, NJ9 and NJ10). */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import type { NodeOptions } from "@gsv/node";
import { startFakeModel } from "../../../test/e2e/support.ts";
import { type Client, until, WireError, withGateway } from "./support.ts";

const PROGRAM = fileURLToPath(new URL("programs/lamp.ts", import.meta.url));

class Program {
  readonly #child: ChildProcess;
  readonly #options: NodeOptions;
  output = "";
  constructor(options: NodeOptions, env: Readonly<Record<string, string>> = {}) {
    this.#options = options;
    this.#child = spawn(process.execPath, [PROGRAM, JSON.stringify(options)], { env: { ...process.env, ...env }, stdio: "pipe" });
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream?.setEncoding("utf8").on("data", (text: string) => {
        this.output += text;
      });
  }
  says(text: string): Promise<boolean> {
    return until(`the program says ${text}, said:\n${this.output}`, () => this.output.split("\n").includes(text));
  }
  get starts(): string[] {
    const file = join(this.#options.workspace, "starts");
    return existsSync(file) ? readFileSync(file, "utf8").trim().split("\n") : [];
  }
  started(name: string, times = 1): Promise<boolean> {
    return until(`${name} has started`, () => this.starts.filter((it) => it === name).length === times);
  }
  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, "close");
    this.#child.kill("SIGKILL");
    await ended;
  }
  /** Ends its stdin; gives the exit status when it has ended by itself. */
  async close(): Promise<number | null> {
    const ended = once(this.#child, "close");
    this.#child.stdin?.end();
    return ((await ended) as [number | null])[0];
  }
  async ended(): Promise<number | null> {
    if (this.#child.exitCode !== null) return this.#child.exitCode;
    return ((await once(this.#child, "close")) as [number | null])[0];
  }
}

describe("a program with a node", () => {
  const scene = withGateway();
  const programs: Program[] = [];
  after(async () => {
    await Promise.all(programs.map((program) => program.kill()));
  });
  const start = async (options: NodeOptions, env?: Readonly<Record<string, string>>): Promise<Program> => {
    const program = new Program(options, env);
    programs.push(program);
    await program.says("connected");
    return program;
  };
  const reason = (call: Promise<unknown>): Promise<string | undefined> =>
    call.then(
      (value) => `ok: ${JSON.stringify(value)}`,
      (error: unknown) => (error instanceof WireError ? error.reason : String(error)),
    );

  it("[NJ9] a program that is killed in the middle of a call: the outcome is unknown, and the call never starts again", async () => {
    const options = await scene.options("killed");
    const first = await start(options);
    const call = reason(scene.call("killed__Once", {}, { callId: "one" }));
    await first.started("Once");
    await first.kill();
    const second = await start(options);
    assert.equal(await call, "tool.outcome_unknown");
    const log = readFileSync(join(options.stateDir, "node.log"), "utf8");
    assert.match(log, /a call of an earlier start has ended/);
    assert.deepEqual(second.starts, ["Once"]);
  });

  it("[NJ9] a tool that may run again runs again in the next program", async () => {
    const options = await scene.options("repeats");
    const first = await start(options);
    const call = reason(scene.call("repeats__Again"));
    await first.started("Again");
    await first.kill();
    const second = await start(options, { LAMP_ENDS: "1" });
    const outcome = await call;
    // The gateway hands a client's call over once (G7); the client asks again.
    if (outcome === "node.offline") assert.equal(await reason(scene.call("repeats__Again")), 'ok: "done"');
    else assert.equal(outcome, 'ok: "done"');
    await second.started("Again", 2);
  });

  it("[NJ5] a function that never lets go of the program has an unknown outcome at its deadline", async () => {
    const options = await scene.options("busy");
    const program = await start(options);
    assert.equal(await reason(scene.call("busy__Block", {}, { timeoutMs: 1000 })), "tool.outcome_unknown");
    assert.deepEqual(program.starts, ["Block"]);
    await program.kill();
  });

  it("[NJ10] a connected node keeps its program running, and a closed one lets it end", async () => {
    const options = await scene.options("ends");
    const program = await start(options, { LAMP_UNREF: "1" });
    // It is still there after a call.
    assert.equal(await reason(scene.call("ends__Again", {}, { timeoutMs: 300 })), "tool.timeout");
    assert.equal(await program.close(), 0, program.output);
    assert.match(program.output, /closed\n/);
  });

  it("[NJ10] the signals of calls that go on fire when the node closes, and what ends then is reported", async () => {
    const program = await start(await scene.options("closing"));
    const call = reason(scene.call("closing__Closing"));
    await program.started("Closing");
    assert.equal(await program.close(), 0, program.output);
    await program.says("aborted node.closed");
    assert.equal(await call, 'ok: "ended"');
  });

  it("[NJ10] an error that no one listens to ends the program, as with every EventEmitter", async () => {
    const token = await scene.token("loud");
    const at = (folder: string): NodeOptions => ({ ...scene.folders(folder), id: "loud", url: scene.machine.url, token });
    const older = await start(at("loud-a"), { LAMP_LISTENS: "0" });
    await start(at("loud-b"));
    assert.equal(await older.ended(), 1);
    assert.match(older.output, /link\.replaced/);
    assert(!older.output.includes(token));
  });
});

describe("a run of an agent", () => {
  const scene = withGateway();

  it("[NJ5] shows the progress of a function, and its stop fires the function's signal", async () => {
    const model = await startFakeModel();
    try {
      await scene.machine.useModel(model);
      const node = scene.open(await scene.options("lamp"));
      const why = Promise.withResolvers<unknown>();
      node.tool({
        name: "Dim",
        description: "Dims the lamp slowly.",
        inputSchema: { type: "object", properties: { to: { type: "integer" } } },
        run: (args, { progress, signal }) => {
          progress(`dimming to ${String(args["to"])}\n`);
          return new Promise((_done, fail) =>
            signal.addEventListener("abort", () => {
              why.resolve(signal.reason);
              fail(signal.reason);
            }),
          );
        },
      });
      await node.connect();
      const client: Client = await scene.machine.client();
      const sessionKey = "agent:main:cli:dm:lamp";
      const runId = await client.say('call lamp__Dim {"to":40}', { sessionKey });
      await client.waitFor("the progress", ({ event, payload }) => event === "tool.progress" && payload["chunk"] === "dimming to 40\n");
      await client.call("chat.abort", { sessionKey });
      assert.equal(((await why.promise) as { reason: string }).reason, "tool.cancelled");
      assert.equal((await client.ending(runId)).state, "aborted");
    } finally {
      await model.close();
    }
  });
});
