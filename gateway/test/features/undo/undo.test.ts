/** `undo.plan` and `undo.apply` on the wire: agents' files by their versions, machines by requests, and what is left. */
import { reset } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { UndoResult } from "../../../../protocol/gen/types.ts";
import { client, fakeSessions, gateway, last, node, type Peer, seed, sha256, token, eventually } from "../../support/gateway.ts";

let admin: Peer;
let sessions: ReturnType<typeof fakeSessions>;
beforeEach(async () => {
  await reset();
  sessions = fakeSessions();
  await seed();
  admin = await client();
});
afterEach(() => {
  vi.restoreAllMocks();
});

const sessionKey = "agent:main:main";
const read = async (path: string): Promise<string> => (await admin.ok<{ content: string }>("workspace.read", { path })).content;
/** A change of an agent's file as a tool of a run makes it. Content undefined: it deletes the file. */
async function byRun(callId: string, path: string, content: string | undefined, runId = "run-1"): Promise<void> {
  const log = await admin.call("workspace.log", { path });
  const current = log.ok ? (log.payload as { current?: { version: string } }).current : undefined;
  const before = current === undefined ? {} : { before: { version: current.version, sha256: await sha256(await read(path)) } };
  const after = content === undefined ? {} : { after: await sha256(content) };
  await gateway().fileChanging({ callId, sessionKey, runId, tool: "gsv__WriteFile", agentId: "main", path, ...before, ...after });
  if (content === undefined) await admin.ok("workspace.delete", { path });
  else await admin.ok("workspace.write", { path, content });
}
async function refOf(): Promise<string> {
  await admin.ok("chat.send", { sessionKey, message: "hi" });
  return last<{ identity: { ref: string } }>(sessions.of("send")).identity.ref;
}
const outcomes = ({ places }: UndoResult) =>
  places.map(({ nodeId, agentId, files }) => [
    nodeId ?? `agent ${agentId}`,
    ...files.map((file) => `${file.path} ${file.action} ${file.outcome}`),
  ]);
const KEEPS = { ledger: { calls: [] }, nodeRuntime: { hostCapabilities: ["filesystem.undo"], toolCapabilities: {} } };

describe("agents' files", () => {
  test("[UN5] [UN4] the changes of a run are undone by their versions, and the undo too", async () => {
    const ref = await refOf();
    await admin.ok("workspace.write", { path: "a.md", content: "first" });
    await admin.ok("workspace.write", { path: "gone.md", content: "kept" });
    await byRun(`${ref}/r1/1/0`, "a.md", "second");
    await byRun(`${ref}/r1/1/1`, "gone.md", undefined);
    await byRun(`${ref}/r1/2/0`, "a.md", "third");
    await byRun(`${ref}/r1/2/1`, "new.md", "made");

    const plan = await admin.ok<UndoResult>("undo.plan", { sessionKey });
    expect([plan.kind, plan.target, plan.undoId]).toEqual(["run", "run-1", undefined]);
    expect(outcomes(plan)).toEqual([["agent main", "new.md remove planned", "a.md rewrite planned", "gone.md bring_back planned"]]);
    expect(await read("a.md")).toBe("third");

    const done = await admin.ok<UndoResult>("undo.apply", { target: "run-1" });
    expect(outcomes(done)).toEqual([["agent main", "new.md remove undone", "a.md rewrite undone", "gone.md bring_back undone"]]);
    expect([await read("a.md"), await read("gone.md")]).toEqual(["first", "kept"]);
    expect((await admin.refused("workspace.read", { path: "new.md" })).reason).toBe("path.not_found");

    const again = await admin.ok<UndoResult>("undo.apply", { target: "run-1" });
    expect(again.places[0]?.counts).toEqual({ unchanged: 3 });
    const back = await admin.ok<UndoResult>("undo.apply", { target: done.undoId });
    expect([back.kind, back.places[0]?.counts]).toEqual(["undo", { undone: 3 }]);
    expect([await read("a.md"), await read("new.md")]).toEqual(["third", "made"]);
    expect((await admin.refused("workspace.read", { path: "gone.md" })).reason).toBe("path.not_found");
  });

  test("[UN6] without a target, the next undo is of the run before; a run whose undo is undone comes again", async () => {
    const ref = await refOf();
    await admin.ok("workspace.write", { path: "a.md", content: "first" });
    await byRun(`${ref}/r1/1/0`, "a.md", "second", "run-1");
    await byRun(`${ref}/r2/1/0`, "a.md", "third", "run-2");
    const undo = () => admin.ok<UndoResult>("undo.apply", { sessionKey });
    const newest = await undo();
    expect([newest.target, await read("a.md")]).toEqual(["run-2", "second"]);
    // One that changes nothing does not stand for the undo that did.
    await admin.ok<UndoResult>("undo.apply", { target: "run-2" });
    expect((await admin.ok<UndoResult>("undo.plan", { sessionKey })).target).toBe("run-1");
    expect([(await undo()).target, await read("a.md")]).toEqual(["run-1", "first"]);
    expect((await admin.refused("undo.apply", { sessionKey })).reason).toBe("undo.nothing");
    // The undo of run-2 is taken back: it may be undone again.
    await admin.ok<UndoResult>("undo.apply", { target: newest.undoId, force: true });
    expect([(await undo()).target, await read("a.md")]).toEqual(["run-2", "second"]);
  });

  test("[UN6] a name that is of another conversation, or that is a conversation, says what to write instead", async () => {
    const ref = await refOf();
    await admin.ok("workspace.write", { path: "a.md", content: "first" });
    await byRun(`${ref}/r1/1/0`, "a.md", "second", "run-1");
    expect(await admin.refused("undo.plan", { target: "run-1", sessionKey: "agent:main:cli:dm:other" })).toMatchObject({
      reason: "undo.nothing",
      message: `"run-1" belongs to the conversation ${sessionKey}, not to agent:main:cli:dm:other.`,
      hint: "Run `gsv undo run-1` without a conversation.",
    });
    expect(await admin.refused("undo.plan", { target: sessionKey })).toMatchObject({
      reason: "undo.nothing",
      hint: `To undo its last run, run \`gsv undo --session ${sessionKey}\`.`,
    });
    expect(await admin.refused("undo.plan", { sessionKey: "agent:main:cli:dm:mian" })).toMatchObject({ reason: "session.not_found" });
  });

  test("[UN6] a run of a conversation that was deleted since is named as one, also under a name that is in use again", async () => {
    await admin.ok("workspace.write", { path: "a.md", content: "first" });
    await byRun("gone00000/r1/1/0", "a.md", "second", "run-1");
    expect((await admin.ok<UndoResult>("undo.plan", { sessionKey })).deleted).toBe(true);
    const ref = await refOf();
    expect(await admin.ok<UndoResult>("undo.plan", { target: "run-1" })).toMatchObject({ sessionKey, deleted: true });
    await byRun(`${ref}/r1/1/0`, "a.md", "third", "run-2");
    expect((await admin.ok<UndoResult>("undo.plan", { sessionKey })).deleted).toBeUndefined();
  });

  test("[UN6] without a target, commands of later runs are named: one of those runs may be meant", async () => {
    const ref = await refOf();
    await node("lap", undefined, KEEPS);
    await admin.ok("workspace.write", { path: "a.md", content: "first" });
    const bash = (callId: string, runId: string) =>
      gateway().dispatchTool({ callId, sessionKey, runId, nodeId: "lap", tool: "Bash", args: {}, timeoutMs: 1000 });
    await bash(`${ref}/r1/1/0`, "run-1");
    await byRun(`${ref}/r2/1/0`, "a.md", "second", "run-2");
    await bash(`${ref}/r2/1/1`, "run-2");
    const plan = (params: object) => admin.ok<UndoResult>("undo.plan", params);
    expect((await plan({ sessionKey })).laterCommands).toBeUndefined();
    await bash(`${ref}/r3/1/0`, "run-3");
    const { target, laterCommands } = await plan({ sessionKey });
    expect([target, laterCommands]).toEqual(["run-2", [{ callId: `${ref}/r3/1/0`, nodeId: "lap", tool: "Bash" }]]);
    expect((await plan({ target: "run-2" })).laterCommands).toBeUndefined();
  });

  test("[UN6] without a target, a run whose tools changed no file is not meant", async () => {
    const ref = await refOf();
    const lap = await node("lap", undefined, KEEPS);
    await admin.ok("workspace.write", { path: "a.md", content: "first" });
    await byRun(`${ref}/r1/1/0`, "a.md", "second", "run-1");
    await gateway().dispatchTool({
      callId: `${ref}/r2/1/0`,
      sessionKey,
      runId: "run-2",
      nodeId: "lap",
      tool: "Write",
      args: {},
      timeoutMs: 1000,
    });
    const asked = admin.ok<UndoResult>("undo.apply", { sessionKey });
    const request = await lap.event("undo.request");
    expect(request.payload).toMatchObject({ calls: `${ref}/r2/`, dryRun: true });
    // What it was asked to write was refused.
    await lap.ok("undo.report", { callId: (request.payload as { callId: string }).callId, files: [] });
    expect([(await asked).target, await read("a.md")]).toEqual(["run-1", "first"]);
    expect(lap.events("undo.request")).toHaveLength(1);
  });

  test("[UN3] [UN5] a file that was changed since is left alone unless forced", async () => {
    const ref = await refOf();
    await admin.ok("workspace.write", { path: "a.md", content: "first" });
    await byRun(`${ref}/r1/1/0`, "a.md", "second");
    await admin.ok("workspace.write", { path: "a.md", content: "the owner's" });
    const left = await admin.ok<UndoResult>("undo.apply", { sessionKey });
    expect(outcomes(left)).toEqual([["agent main", "a.md rewrite conflict"]]);
    expect(await read("a.md")).toBe("the owner's");
    const forced = await admin.ok<UndoResult>("undo.apply", { sessionKey, force: true });
    expect(outcomes(forced)).toEqual([["agent main", "a.md rewrite undone"]]);
    expect(await read("a.md")).toBe("first");
  });

  test("[UN5] a tool records its change before it makes it, under its own call", async () => {
    await admin.ok("workspace.write", { path: "a.md", content: "first" });
    await admin.ok("tool.invoke", {
      tool: "gsv__EditFile",
      args: { path: "a.md", oldString: "first", newString: "second" },
      callId: "edit-1",
    });
    const { entries } = await admin.ok<{ entries: { origin?: string }[] }>("audit.list", {});
    expect(entries.length).toBeGreaterThan(0);
    const { tokens } = await admin.ok<{ tokens: { tokenId: string }[] }>("tokens.list");
    const tokenIds = ["gateway", "admin", ...tokens.map(({ tokenId }) => tokenId)];
    const results = await Promise.all(tokenIds.map((id) => admin.call("undo.apply", { target: `gw/${id}/edit-1` })));
    expect(results.filter(({ ok }) => ok)).toHaveLength(1);
    expect(await read("a.md")).toBe("first");
  });
});

describe("machines", () => {
  test("[UN6] a call whose record was lost with the gateway is known again when its result comes", async () => {
    vi.restoreAllMocks();
    const call = { name: "lap__Write", runId: "run-7" };
    sessions = fakeSessions(() => ({ toolResult: async () => ({ taken: "taken", call }) }));
    const ref = await refOf();
    const lap = await node("lap", undefined, KEEPS);
    const callId = `${ref}/r7/1/0`;
    await lap.ok("tool.result", { callId, result: "written" });
    const asked = admin.call("undo.apply", { target: "run-7" });
    const { payload } = await lap.event("undo.request");
    await lap.ok("undo.report", {
      callId: (payload as { callId: string }).callId,
      files: [{ path: "a", action: "rewrite", outcome: "undone" }],
    });
    expect(await asked).toMatchObject({ ok: true, payload: { places: [{ nodeId: "lap", counts: { undone: 1 } }] } });
    // A call that only reads has nothing to be undone.
    call.name = "lap__Read";
    call.runId = "run-8";
    await lap.ok("tool.result", { callId: `${ref}/r8/1/0`, result: "text" });
    expect((await admin.refused("undo.plan", { target: "run-8" })).reason).toBe("undo.nothing");
  });

  test("[UN6] a machine that answers without an end, or with more than an answer lists, is stopped and counted", async () => {
    const ref = await refOf();
    const lap = await node("lap", undefined, KEEPS);
    await gateway().dispatchTool({
      callId: `${ref}/r7/1/0`,
      sessionKey,
      runId: "run-7",
      nodeId: "lap",
      tool: "Write",
      args: {},
      timeoutMs: 1000,
    });
    const undo = async (
      parts: readonly { readonly files: number; readonly next?: number }[],
    ): Promise<UndoResult["places"][number] | undefined> => {
      const before = lap.events("undo.request").length;
      const asked = admin.ok<UndoResult>("undo.plan", { target: "run-7" });
      for (const [index, { files, ...next }] of parts.entries()) {
        const { callId } = await eventually(() => {
          const found = lap.events("undo.request")[before + index];
          if (found === undefined) throw new Error(`no part ${index}`);
          return found.payload as { callId: string };
        });
        const file = (at: number) => ({ path: `${"x".repeat(3000)}${index}-${at}`, action: "rewrite", outcome: "planned" });
        await lap.ok("undo.report", { callId, files: Array.from({ length: files }, (_, at) => file(at)), ...next });
      }
      return (await asked).places[0];
    };
    const again = await undo([
      { files: 1, next: 7 },
      { files: 1, next: 7 },
    ]);
    expect(again).toMatchObject({ problem: expect.stringContaining("in a wrong order") as string, counts: { planned: 2 } });
    const many = await undo([{ files: 200, next: 9 }, { files: 200, next: 8 }, { files: 200 }]);
    expect(many?.counts).toEqual({ planned: 600 });
    expect((many?.files.length ?? 0) + (many?.unlisted ?? 0)).toBe(600);
    expect(many?.files.length).toBeLessThan(180);
  });

  test("[UN6] a run's calls are undone part by part, an offline and an old machine are named, and commands too", async () => {
    const ref = await refOf();
    const [lap, off] = [await node("lap", undefined, KEEPS), await node("off", undefined, KEEPS)];
    await node("old");
    const calls = [
      ["lap", "Write"],
      ["off", "Delete"],
      ["old", "Edit"],
      ["lap", "Bash"],
    ] as const;
    for (const [index, [nodeId, tool]] of calls.entries())
      await gateway().dispatchTool({ callId: `${ref}/r7/1/${index}`, sessionKey, runId: "run-7", nodeId, tool, args: {}, timeoutMs: 1000 });
    off.socket.close(1000, "");
    await eventually(async () => {
      const { nodes } = await admin.ok<{ nodes: { nodeId: string; online: boolean }[] }>("nodes.list");
      if (nodes.find(({ nodeId }) => nodeId === "off")?.online !== false) throw new Error("still online");
    });
    const asked = admin.call("undo.apply", { target: "run-7" });
    const first = await lap.event("undo.request");
    expect(first.payload).toMatchObject({ calls: `${ref}/r7/`, dryRun: false, force: false });
    const file = (path: string) => ({ path, action: "rewrite", outcome: "undone" });
    await lap.ok("undo.report", { callId: (first.payload as { callId: string }).callId, files: [file("a")], next: 41 });
    const second = await eventually(() => {
      const found = lap.events("undo.request")[1];
      if (found === undefined) throw new Error("no second part");
      return found;
    });
    expect(second.payload).toMatchObject({ calls: `${ref}/r7/`, beforeSeq: 41 });
    await lap.ok("undo.report", { callId: (second.payload as { callId: string }).callId, files: [file("b")] });
    const answer = await asked;
    if (!answer.ok) throw new Error(JSON.stringify(answer));
    const done = answer.payload as UndoResult;
    expect(done.places.map(({ nodeId, problem, counts }) => [nodeId, problem?.split(".")[0], counts])).toEqual([
      ["lap", undefined, { undone: 2 }],
      ["off", "The machine is not connected", {}],
      ["old", "The node there keeps no copies", {}],
    ]);
    expect(done.commands).toEqual([{ callId: `${ref}/r7/1/3`, nodeId: "lap", tool: "Bash" }]);
    const { entries } = await admin.ok<{ entries: { target?: string; detail?: string }[] }>("audit.list", { action: "undo.apply" });
    expect(entries[0]).toMatchObject({ target: "run-7", detail: expect.stringContaining("lap: 2 undone") as string });
  });

  test("[UN6] a machine that fails in the middle is named with what is done, and reports of others are dropped", async () => {
    const ref = await refOf();
    const [lap, box] = [await node("lap", undefined, KEEPS), await node("box", undefined, KEEPS)];
    await gateway().dispatchTool({ callId: `${ref}/r1/1/0`, sessionKey, nodeId: "lap", tool: "Write", args: {}, timeoutMs: 1000 });
    const asked = admin.call("undo.apply", { target: `${ref}/r1/1/0` });
    const { callId } = (await lap.event("undo.request")).payload as { callId: string };
    expect(await box.ok("undo.report", { callId, files: [] })).toEqual({ ok: true, dropped: true });
    await lap.ok("undo.report", { callId, error: "could not keep the earlier content" });
    const answer = await asked;
    expect(answer).toMatchObject({ ok: true, payload: { kind: "call", places: [{ nodeId: "lap", counts: {} }] } });
    expect(JSON.stringify(answer)).toContain("Not finished: could not keep the earlier content");
  });

  test("[UN4] an undo that was not finished goes on under its own name, and the next one has another", async () => {
    const ref = await refOf();
    const lap = await node("lap", undefined, KEEPS);
    await gateway().dispatchTool({ callId: `${ref}/r1/1/0`, sessionKey, nodeId: "lap", tool: "Write", args: {}, timeoutMs: 1000 });
    const names: unknown[] = [];
    for (const report of [{ error: "killed" }, { files: [] }, { files: [] }]) {
      const asked = admin.ok<UndoResult>("undo.apply", { target: `${ref}/r1` });
      const request = await eventually(() => {
        const found = lap.events("undo.request")[names.length];
        if (found === undefined) throw new Error("no request");
        return found.payload as { callId: string; undoId: string };
      });
      await lap.ok("undo.report", { callId: request.callId, ...report });
      expect((await asked).undoId).toBe(request.undoId);
      names.push(request.undoId);
    }
    expect(names[1]).toBe(names[0]);
    expect(names[2]).not.toBe(names[0]);
  });

  test("[UN6] there is nothing to undo, and a node may not ask for an undo", async () => {
    for (const params of [{}, { sessionKey: "agent:main:main" }])
      expect(await admin.refused("undo.apply", params)).toMatchObject({
        reason: "undo.nothing",
        message: expect.stringContaining(`no run of ${sessionKey} changed a file`),
      });
    for (const target of ["run-x", "a/r1/1/0", "undo/none"])
      expect(await admin.refused("undo.apply", { target })).toMatchObject({
        reason: "undo.nothing",
        message: expect.stringContaining(`under the name "${target}": no run, call or undo of the last 7 days has it`),
        hint: expect.stringContaining("`gsv undo` alone"),
      });
    expect(await admin.refused("undo.apply", { sessionKey: "agent:main:cli:dm:x" })).toMatchObject({
      reason: "session.not_found",
      message: "There is no conversation agent:main:cli:dm:x, so nothing was undone.",
      hint: "List the conversations: `gsv session list`.",
    });
    const lap = await node("lap");
    expect((await lap.refused("undo.apply", {})).reason).toBe("auth.forbidden");
    const plain = await client((await token("client")).token);
    expect((await plain.refused("undo.plan", {})).reason).toBe("undo.nothing");
  });
});
