/** Calls that the owner has allowed for a time, in a real session. */
import { afterEach, describe, expect, it, vi } from "vitest";
import { asCallId, asNodeId } from "../../../protocol/gen/types.ts";
import type { WaitingQuestion } from "../../src/ports/approvals.ts";
import type { SandboxProfile } from "../../../protocol/gen/types.ts";
import { newSession, onNode, says, Stage, type TestSession, until, value } from "./support.ts";

afterEach(() => vi.restoreAllMocks());

function stage(profile: SandboxProfile = "workspace"): Stage {
  const made = new Stage().open();
  made.tools = [onNode("lap", "Bash")];
  made.toolApproval = { mode: "ask" };
  made.nodes = [
    {
      nodeId: asNodeId("lap"),
      online: true,
      hostCapabilities: [],
      toolCapabilities: {},
      tools: ["Bash"],
      sandbox: { profile, tier: "bubblewrap" },
    },
  ];
  return made;
}
const bash = (command: string) => [{ name: "lap__Bash", arguments: { command } }];
const waiting = (on: Stage): readonly WaitingQuestion[] => on.approvals.at(-1)?.waiting ?? [];
const answerCall = (s: TestSession, on: Stage, index: number) =>
  s.port.toolResult("lap", { callId: asCallId(on.dispatches[index]?.callId ?? ""), outcome: "ok", result: "done" });
/** Takes the choice as the gateway does: the next run context has the grant. */
function grantFrom(on: Stage, question: WaitingQuestion, id = "g1"): void {
  if (question.offer === undefined) throw new Error("nothing is offered");
  const { scope, sessionId } = question.offer;
  on.grants = [...on.grants, { id, scope, expiresAt: Date.now() + 60_000, sessionId }];
}

describe("a grant", () => {
  it("[GR6] 63 calls of one interpreter with changing arguments need one question", async () => {
    const on = stage();
    const s = newSession({ isOwnersSession: true });
    let questions = 0;
    let modelCalls = 0;
    await s.send("a");
    for (let index = 0; index < 63; index++) {
      if (index === 32) {
        // A run has at most 50 steps, so the task takes two messages.
        (await on.call(modelCalls++)).answer(says("half done"));
        await on.ended("run-a");
        await s.send("b");
      }
      (await on.call(modelCalls++)).answer(says("", bash(`python3 step.py --part ${index} 'file ${index}.csv'`)));
      const next = await until("the call or its question", () => on.dispatches.length > index || waiting(on)[0]);
      if (next !== true) {
        questions += 1;
        const { code, hash } = next;
        expect(value(await s.port.answerApproval({ code, hash, answer: "allow", by: "client:me", choice: "session" })).outcome).toBe(
          "allowed",
        );
        grantFrom(on, next);
        await until("the call", () => on.dispatches.length > index);
      }
      await answerCall(s, on, index);
    }
    (await on.call(modelCalls)).answer(says("done"));
    expect(await on.ended("run-b")).toBe("final");
    expect(questions).toBe(1);
    expect(on.dispatches).toHaveLength(63);
    expect(on.dispatches.slice(1).map(({ rule }) => rule)).toEqual(Array.from({ length: 62 }, () => "grant:g1"));
    expect(on.dispatches[0]?.rule).toMatch(/^approval:/);
  });

  it("[GR5] that was revoked after the run got it allows nothing: the call asks", async () => {
    const on = stage();
    const s = newSession({ isOwnersSession: true });
    await s.send("a");
    (await on.call(0)).answer(says("", bash("python3 a.py")));
    const question = await until("the question", () => waiting(on)[0]);
    grantFrom(on, question);
    const { code, hash } = question;
    value(await s.port.answerApproval({ code, hash, answer: "allow", by: "client:me", choice: "session" }));
    await until("the call", () => on.dispatches.length === 1);
    await answerCall(s, on, 0);
    const second = await on.call(1);
    // The run has the grant; the gateway no longer does.
    on.grants = [];
    second.answer(says("", bash("python3 b.py")));
    const again = await until("the second question", () => waiting(on).find((asked) => asked.code !== code));
    expect(again.text).toBe("python3 b.py");
    expect(on.dispatches).toHaveLength(1);
  });

  it("[GR7] for a conversation allows nothing after its reset, also while the gateway still lists it", async () => {
    const on = stage();
    const s = newSession({ isOwnersSession: true });
    await s.send("a");
    (await on.call(0)).answer(says("", bash("python3 a.py")));
    const question = await until("the question", () => waiting(on)[0]);
    grantFrom(on, question);
    value(await s.port.answerApproval({ code: question.code, hash: question.hash, answer: "allow", by: "client:me", choice: "session" }));
    await until("the call", () => on.dispatches.length === 1);
    await answerCall(s, on, 0);
    (await on.call(1)).answer(says("done"));
    await on.ended("run-a");
    value(await s.port.reset());
    await s.send("b");
    (await on.call(2)).answer(says("", bash("python3 b.py")));
    const again = await until("the second question", () => waiting(on).find(({ code }) => code !== question.code));
    expect(again.text).toBe("python3 b.py");
    expect(on.grants).toHaveLength(1);
    expect(on.dispatches).toHaveLength(1);
  });

  it("[GR1] [AP9] the answer's choice is reported with the end of the question, and only once; a denial grants nothing", async () => {
    const on = stage();
    const s = newSession({ isOwnersSession: true });
    await s.send("a");
    (await on.call(0)).answer(says("", [...bash("python3 a.py"), ...bash("git push")]));
    const [first, second] = await until("both questions", () => (waiting(on).length === 2 ? waiting(on) : undefined));
    if (first === undefined || second === undefined) throw new Error("two questions");
    value(await s.port.answerApproval({ code: first.code, hash: first.hash, answer: "allow", by: "client:me", choice: "8h" }));
    value(await s.port.answerApproval({ code: first.code, hash: first.hash, answer: "allow", by: "client:other", choice: "30d" }));
    value(await s.port.answerApproval({ code: second.code, hash: second.hash, answer: "deny", by: "client:me" }));
    const ended = await until("the report", () => (waiting(on).length === 0 ? on.approvals.at(-1)?.ended : undefined));
    expect(ended.map(({ outcome, by, choice }) => [outcome, by, choice])).toEqual([
      ["allowed", "client:me", "8h"],
      ["denied", "client:me", undefined],
    ]);
  });

  it("[GR2] holds in the folder in which the machine worked, and in no other", async () => {
    const on = stage();
    const works = (workspace: string): void => {
      on.nodes = on.nodes.map((node) => ({ ...node, workspace }));
    };
    works("/home/me/a");
    const s = newSession({ isOwnersSession: true });
    const calls = async (round: number, message: string): Promise<void> => {
      await s.send(message);
      (await on.call(round)).answer(says("", bash("rm -rf build")));
    };
    await calls(0, "a");
    const asked = await until("the question", () => waiting(on)[0]);
    const shown = on.news.flatMap(({ payload }) => ("state" in payload && payload.state === "paused" ? [payload.text ?? ""] : []));
    expect(shown[0]).toContain(
      'exactly `rm -rf build`, whatever it finds then, in the workspace of lap ("/home/me/a"), in the sandbox workspace',
    );
    value(await s.port.answerApproval({ code: asked.code, hash: asked.hash, answer: "allow", by: "client:me", choice: "session" }));
    grantFrom(on, asked);
    await until("the call", () => on.dispatches.length > 0);
    await answerCall(s, on, 0);
    (await on.call(1)).answer(says("done"));
    expect(await on.ended("run-a")).toBe("final");

    works("/home/me/b");
    await calls(2, "b");
    const again = await until("the question in the other folder", () => waiting(on)[0]);
    value(await s.port.answerApproval({ code: again.code, hash: again.hash, answer: "deny", by: "client:me" }));
    (await on.call(3)).answer(says("done"));
    expect(await on.ended("run-b")).toBe("final");
    expect(on.dispatches).toHaveLength(1);

    works("/home/me/a");
    await calls(4, "c");
    await until("the call without a question", () => on.dispatches.length > 1);
    expect(on.dispatches[1]?.rule).toBe("grant:g1");
  });

  it("[GR3] [GR4] a complex command, a program outside a sandbox, git there and a rule that asks offer nothing; a choice for them allows once", async () => {
    const on = stage("off");
    const s = newSession({ isOwnersSession: true });
    await s.send("a");
    (await on.call(0)).answer(says("", [...bash("ls $HOME"), ...bash("python3 a.py"), ...bash("du -s"), ...bash("git log")]));
    const asked = await until("the questions", () => (waiting(on).length === 4 ? waiting(on) : undefined));
    expect(asked.map(({ offer }) => offer?.scope.what.kind)).toEqual([undefined, undefined, "commands", undefined]);
    const [complex] = asked;
    value(await s.port.answerApproval({ code: complex?.code ?? "", answer: "allow", by: "client:me", choice: "30d" }));
    const ended = await until("the report", () => on.approvals.at(-1)?.ended.find(({ code }) => code === complex?.code));
    expect(ended).not.toHaveProperty("choice");
    const shown = on.news.flatMap(({ payload }) => ("state" in payload && payload.state === "paused" ? [payload.text ?? ""] : []));
    expect(shown.map((text) => text.includes("--for session"))).toEqual([false, false, true, false]);
    expect(shown[2]).toContain(
      "`du` with any arguments that name no other folder (a link there can lead to one), in the workspace of lap, without a sandbox",
    );
  });
});
