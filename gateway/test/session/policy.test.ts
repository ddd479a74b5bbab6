/** The policy in a session: what happens to the model's calls by rules and modes. */
import { afterEach, describe, expect, it, vi } from "vitest";
import { newSession, onNode, says, Stage, until, value } from "./support.ts";

afterEach(() => {
  vi.restoreAllMocks();
});
const bash = (command: unknown) => ({ name: "lap__Bash", arguments: { command } });
const denying = {
  defaultDecision: "allow" as const,
  rules: [
    {
      id: "no-rm",
      tool: "*__Bash",
      decision: "deny" as const,
      reason: "no deleting",
      when: [{ path: "command", op: "startsWith" as const, value: ["rm"] }],
    },
  ],
};

describe("[PO1] [PO9] a call of a run", () => {
  it("[F1] that a rule denies is not dispatched, tells the model what to do, and is an entry of the audit; others run", async () => {
    const stage = new Stage().open();
    stage.tools = [onNode("lap", "Bash")];
    stage.toolApproval = denying;
    const s = newSession({ isOwnersSession: true });
    await s.send("a");
    (await stage.call(0)).answer(says("", [bash("rm -rf x"), bash("ls"), bash("rm$IFS-rf"), { name: "gsv__Note", arguments: {} }]));
    await until("the others", () => stage.dispatches.length === 1 && stage.nativeRuns.length === 1);
    expect(stage.dispatches.map(({ args }) => args)).toEqual([{ command: "ls" }]);
    const question = await until("the question", () => stage.approvals.at(-1)?.waiting[0]);
    expect(question).toMatchObject({
      rule: "rule:no-rm",
      why: expect.stringContaining("compared with the rule no-rm (no deleting): the shell makes some of its words"),
    });
    const denied = stage.audits.filter(({ decision }) => decision === "denied");
    const entry = (command: string, index: number) => ({
      actor: expect.stringMatching(/^session:agent:/),
      action: "tool.call",
      target: "lap__Bash",
      decision: "denied",
      origin: expect.stringMatching(/client/),
      rule: "rule:no-rm",
      detail: expect.stringMatching(new RegExp(`/${index}$`)),
      args: { command },
    });
    expect(denied).toEqual([entry("rm -rf x", 0)]);
    value(await s.port.answerApproval({ code: question.code, hash: question.hash, answer: "deny", by: "client:me" }));
    const { callId } = stage.dispatches[0] ?? { callId: "" };
    await s.port.toolResult("lap", { callId: callId as never, result: "a.txt", outcome: "ok" });
    const second = await stage.call(1);
    const results = second.request.messages.flatMap((message) => (message.role === "toolResult" ? [JSON.stringify(message)] : []));
    expect(results.filter((text) => text.includes("rule no-rm (no deleting) denies this call"))).toHaveLength(1);
    second.answer(says("Well."));
    await stage.ended("run-a");
    const ends = stage.news.flatMap(({ payload }) => ("tool" in payload && payload.tool?.phase === "ended" ? [payload.reason] : []));
    expect(ends.filter((reason) => reason === "policy.denied")).toHaveLength(1);
    expect(ends.filter((reason) => reason === "approval.denied")).toHaveLength(1);
  });

  it("[PO5] a pattern of a rule is compared in the session", async () => {
    const stage = new Stage().open();
    stage.tools = [onNode("lap", "Read")];
    stage.toolApproval = { rules: [{ id: "r", tool: "*", decision: "deny", when: [{ path: "path", op: "regex", value: "^secret" }] }] };
    const s = newSession({ isOwnersSession: true });
    await s.send("a");
    const read = (path: string) => ({ name: "lap__Read", arguments: { path } });
    (await stage.call(0)).answer(says("", [read("secret/a"), read("./secret/b"), read("open")]));
    await until("the other", () => stage.dispatches.length === 1);
    expect(stage.dispatches[0]?.args).toEqual({ path: "open" });
    expect(stage.audits.filter(({ decision }) => decision === "denied")).toHaveLength(2);
  });

  it("[PO7] by default decision everything that is offered runs, and a changed setting holds from the next model call on", async () => {
    const stage = new Stage().open();
    stage.tools = [onNode("lap", "Bash")];
    stage.toolApproval = { defaultDecision: "allow" };
    const s = newSession({ isOwnersSession: true });
    await s.send("a");
    (await stage.call(0)).answer(says("", [bash("rm -rf $X")]));
    await until("the dispatch", () => stage.dispatches.length === 1);
    stage.toolApproval = { mode: "plan" };
    await s.port.toolResult("lap", { callId: stage.dispatches[0]?.callId as never, result: "", outcome: "ok" });
    (await stage.call(1)).answer(says("", [bash("ls")]));
    const third = await stage.call(2);
    expect(JSON.stringify(third.request.messages.at(-1))).toContain("in mode plan only calls that read are made");
    third.answer(says("Well."));
    await stage.ended("run-a");
    expect(stage.dispatches).toHaveLength(1);
    expect(value(await s.port.stats()).state).toBe("idle");
  });
});

describe("[PO11] without any setting", () => {
  const machine = (nodeId: string, profile: "off" | "workspace") =>
    ({ nodeId, online: true, hostCapabilities: [], toolCapabilities: {}, tools: ["Bash"], sandbox: { profile } }) as never;
  const on = (nodeId: string, args: Record<string, unknown>) => ({ name: `${nodeId}__Bash`, arguments: args });

  it("a command runs in a machine's sandbox, and asks outside it and on a machine without one", async () => {
    const stage = new Stage().open();
    stage.toolApproval = undefined;
    stage.tools = [onNode("lap", "Bash"), onNode("bare", "Bash")];
    stage.nodes = [machine("lap", "workspace"), machine("bare", "off")];
    const s = newSession({ isOwnersSession: true });
    expect(JSON.stringify(value(await s.send("m", "/mode")))).toContain("auto, the default");
    await s.send("a");
    const calls = [
      on("lap", { command: "make" }),
      on("lap", { command: "make", sandbox: "off" }),
      on("bare", { command: "make" }),
      on("bare", { command: "uname -a" }),
      // No machine takes it, so no one is asked.
      on("lap", { command: "make", sandbox: "workspace+net" }),
    ];
    (await stage.call(0)).answer(says("", calls));
    const asked = await until("both questions", () => {
      const waiting = stage.approvals.at(-1)?.waiting ?? [];
      return waiting.length === 2 ? waiting : undefined;
    });
    expect(asked.map(({ why }) => why)).toEqual([
      "It runs a program on lap outside the sandbox. It may reach every host. It can be allowed once only: what a later call like it does is not known.",
      "It runs a program on bare, which has no sandbox. It may reach every host. It can be allowed once only: what a later call like it does is not known.",
    ]);
    await until("the others", () => stage.dispatches.length === 2);
    expect(stage.dispatches.map(({ args, sandbox }) => [args, sandbox])).toEqual([
      [{ command: "make" }, "workspace"],
      [{ command: "uname -a" }, "off"],
    ]);
  });

  it("[AP6] an answer for a machine that has lost its sandbox since is void, and the call is asked about again", async () => {
    const stage = new Stage().open();
    stage.toolApproval = { mode: "ask" };
    stage.tools = [onNode("lap", "Bash")];
    stage.nodes = [machine("lap", "workspace")];
    const s = newSession({ isOwnersSession: true });
    await s.send("a");
    (await stage.call(0)).answer(says("", [on("lap", { command: "make" })]));
    const first = await until("the question", () => stage.approvals.at(-1)?.waiting[0]);
    stage.nodes = [machine("lap", "off")];
    await s.port.answerApproval({ code: first.code, hash: first.hash, answer: "allow", by: "client:me" });
    const second = await until("another question", () => stage.approvals.at(-1)?.waiting.find(({ code }) => code !== first.code));
    expect(stage.dispatches).toEqual([]);
    value(await s.port.answerApproval({ code: second.code, hash: second.hash, answer: "allow", by: "client:me" }));
    await until("the dispatch", () => stage.dispatches.length === 1);
  });
});

describe("[PO8] a session's mode", () => {
  const modeOf = async (s: ReturnType<typeof newSession>) => {
    const { mode, modeUntil } = value(await s.port.get()).settings;
    return [mode, modeUntil === undefined ? undefined : Math.round((modeUntil - Date.now()) / 60_000)];
  };
  const said = (answer: unknown) => JSON.stringify(answer);

  it("is set by /mode and by a client's change of settings, decides calls, ends with its time, and is shown", async () => {
    const stage = new Stage().open();
    stage.tools = [onNode("lap", "Bash")];
    stage.auto = ({ messages }) => (messages.at(-1)?.role === "toolResult" ? says("Well.") : says("", [bash("git status")]));
    stage.dispatch = () => Promise.resolve("offline");
    const s = newSession({ isOwnersSession: true });
    expect(said(value(await s.send("m1", "/mode plan")))).toContain("From now on: mode plan.");
    expect(await modeOf(s)).toEqual(["plan", undefined]);
    await s.send("a");
    await stage.ended("run-a");
    expect(stage.dispatches).toEqual([]);
    expect(said(value(await s.send("m2", "/mode full")))).toMatch(/mode full until [0-9-]+ [0-9:]+ \(UTC\)/);
    expect(await modeOf(s)).toEqual(["full", 60]);
    expect(said(value(await s.send("m3", "/status")))).toMatch(/Mode: full until/);
    await s.send("b");
    await stage.ended("run-b");
    expect(stage.dispatches).toHaveLength(1);
    value(await s.port.patch({ settings: { mode: "full", modeMs: 86_400_000 } }));
    expect(await modeOf(s)).toEqual(["full", 1440]);
    vi.spyOn(Date, "now").mockReturnValue(Date.now() + 86_400_001);
    expect(said(value(await s.send("m4", "/mode")))).toContain("not set: what no rule decides runs");
    vi.restoreAllMocks();
    value(await s.port.patch({ settings: { mode: "ask" } }));
    expect(await modeOf(s)).toEqual(["ask", undefined]);
    value(await s.port.patch({ clear: ["mode"] }));
    expect(await modeOf(s)).toEqual([undefined, undefined]);
  });

  it("is in the counters while it holds; full ends with the conversation, and others stay", async () => {
    const stage = new Stage().open();
    stage.auto = () => says("Well.");
    const s = newSession({ isOwnersSession: true });
    const counters = async () => {
      const { mode, modeUntil } = value(await s.port.stats());
      return [mode, modeUntil !== undefined];
    };
    await s.send("a");
    await stage.ended("run-a");
    expect(await counters()).toEqual([undefined, false]);
    value(await s.port.patch({ label: "mine" }));
    expect(stage.approvals).toEqual([]);
    value(await s.port.patch({ settings: { mode: "full" } }));
    expect(await counters()).toEqual(["full", true]);
    // The gateway has both in its list of sessions.
    const told = async (mode: string | undefined) =>
      (await until("the gateway is told", () => stage.approvals.find(({ conversation }) => conversation?.mode === mode)))?.conversation;
    const full = await told("full");
    expect(full?.modeUntil).toBe(value(await s.port.stats()).modeUntil);
    value(await s.port.reset());
    expect([(await told(undefined))?.sessionId, full?.sessionId]).toEqual([
      value(await s.port.get()).sessionId,
      value(await s.port.get()).previousSessionIds.at(-1),
    ]);
    expect(await modeOf(s)).toEqual([undefined, undefined]);
    value(await s.port.patch({ settings: { mode: "plan" } }));
    await s.send("b");
    await stage.ended("run-b");
    value(await s.port.reset());
    expect(await counters()).toEqual(["plan", false]);
  });

  it("is refused for a longer time, without a name, in another person's session, and full from a channel", async () => {
    new Stage().open();
    const s = newSession({ isOwnersSession: true });
    expect(said(value(await s.send("m1", "/mode full 25h")))).toContain("up to 24 hours");
    expect(said(value(await s.send("m2", "/mode fast")))).toContain("There is no such mode");
    const channel = { kind: "channel", channel: "test", accountId: "default", role: "owner" } as const;
    expect(said(value(await s.send("m3", "/mode full", { origin: channel })))).toContain("your own client only");
    expect(said(value(await s.send("m4", "/mode ask", { origin: channel })))).toContain("From now on: mode ask");
    expect(await s.port.patch({ settings: { modeMs: 60_000 } })).toMatchObject({ ok: false, error: { reason: "protocol.invalid_params" } });
    expect(await modeOf(s)).toEqual(["ask", undefined]);
    const guest = newSession();
    expect(said(value(await guest.send("g1", "/mode ask")))).toContain("your own conversations only");
    await guest.send("g2", "/mode full", { verbatim: true });
    expect(await guest.port.patch({ settings: { mode: "auto" } })).toMatchObject({ ok: false, error: { reason: "auth.forbidden" } });
  });

  it("[WB1] of one message holds for the run of this message alone, also when it waits behind another run and the conversation's mode changes", async () => {
    const stage = new Stage().open();
    stage.tools = [onNode("lap", "Bash")];
    stage.dispatch = () => Promise.resolve("offline");
    const s = newSession({ isOwnersSession: true });
    await s.send("a");
    const first = await stage.call(0);
    expect(value(await s.send("b", "look /t:high", { mode: "plan" }))).toMatchObject({ queued: true, directives: { mode: "plan" } });
    await s.send("c");
    expect(said(value(await s.send("m1", "/mode full")))).toContain("From now on: mode full");
    first.answer(says("", [bash("git status")]));
    (await stage.call(1)).answer(says("Well."));
    await stage.ended("run-a");
    expect(stage.dispatches).toHaveLength(1);
    const second = await stage.call(2);
    expect(said(value(await s.send("m2", "/status")))).toContain("Mode: plan for the message of this run; else full until");
    expect([first.request.thinkLevel, second.request.thinkLevel]).toEqual([undefined, "high"]);
    second.answer(says("", [bash("git status")]));
    (await stage.call(3)).answer(says("I would look."));
    await stage.ended("run-b");
    expect(stage.dispatches).toHaveLength(1);
    (await stage.call(4)).answer(says("", [bash("git status")]));
    (await stage.call(5)).answer(says("Well."));
    await stage.ended("run-c");
    expect(stage.dispatches).toHaveLength(2);
  });

  it("of one message gives way to a mode that the owner sets during its run, and `full` ends after 24 hours", async () => {
    const stage = new Stage().open();
    stage.tools = [onNode("lap", "Bash")];
    stage.dispatch = () => Promise.resolve("offline");
    const s = newSession({ isOwnersSession: true });
    const { directives } = value(await s.send("a", "go", { mode: "full" })) as { directives: { modeUntil: number } };
    expect(Math.round((directives.modeUntil - Date.now()) / 60_000)).toBe(1440);
    const call = await stage.call(0);
    value(await s.send("m1", "/mode plan"));
    call.answer(says("", [bash("git status")]));
    (await stage.call(1)).answer(says("Well."));
    await stage.ended("run-a");
    expect(stage.dispatches).toEqual([]);
  });

  it("of one message is refused with a command, in another person's session, and full from a channel", async () => {
    new Stage().open();
    const s = newSession({ isOwnersSession: true });
    const channel = { kind: "channel", channel: "test", accountId: "default", role: "owner" } as const;
    for (const refused of [
      await s.send("m1", "/status", { mode: "plan" }),
      await newSession().send("g1", "look", { mode: "plan" }),
      await s.send("m2", "look", { mode: "full", origin: channel }),
    ])
      expect(refused).toMatchObject({ ok: false, error: { reason: "chat.bad_directive" } });
  });

  it("cannot be set by the text of a message that is only text", async () => {
    const stage = new Stage().open();
    stage.auto = () => says("Well.");
    const s = newSession({ isOwnersSession: true });
    await s.send("a", "/mode full", { verbatim: true, origin: { kind: "session", sessionKey: "agent:main:x", hops: 1 } });
    await stage.ended("run-a");
    expect(await modeOf(s)).toEqual([undefined, undefined]);
  });
});
