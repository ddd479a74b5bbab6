/** Agents that hand tasks to others, with real gateway and sessions. Only the model and the clock are made up. */
import { abortAllDurableObjects, runInDurableObject } from "cloudflare:test";
import { beforeEach, describe, expect, test } from "vitest";
import type { AgentReport } from "../../../../protocol/gen/types.ts";
import { DelegationStore } from "../../../src/features/runs/delegation-store.ts";
import type { ModelOutcome, ModelRequest } from "../../../src/ports/model.ts";
import { says } from "../../session/support.ts";
import { ADMIN, client, eventually, fetchWorker, gateway, node } from "../../support/gateway.ts";
import { alarm, jobStage } from "../schedule/support.ts";

const stage = jobStage();
type Call = readonly [name: string, args: Readonly<Record<string, unknown>>];
const uses = (...calls: readonly Call[]): ModelOutcome =>
  says(
    "",
    calls.map(([name, args]) => ({ name, arguments: args })),
  );
const hands = (to: string, instructions: string, more = {}): Call => [`delegate_to_${to}`, { instructions, ...more }];
const isOf = ({ systemPrompt }: ModelRequest, name: string): boolean => systemPrompt.includes(`You are the agent ${name}.`);
const results = ({ messages }: ModelRequest): readonly string[] =>
  messages.flatMap((message) => (message.role === "toolResult" ? [JSON.stringify(message.content)] : []));
const calledAs = (name: string): readonly ModelRequest[] => stage.calls.filter((call) => isOf(call, name));

async function define(name: string, more = ""): Promise<void> {
  const text = `metadata: { id: ${name}, name: ${name}, description: "Does ${name}." }\ncore_context: { system_prompt: "You are the agent ${name}." }\n${more}`;
  await stage.peer.ok("agents.define", { text });
}
/** What each agent does; an agent that has no entry says that it is done. */
function act(agents: Readonly<Record<string, (request: ModelRequest) => ModelOutcome | Promise<ModelOutcome>>>): void {
  stage.answer = (request) => {
    const found = Object.entries(agents).find(([name]) => isOf(request, name));
    return found === undefined ? says("done") : found[1](request);
  };
}
const run = async (name: string, key = "k", payload?: object): Promise<AgentReport> => {
  const response = await fetchWorker("http://gsv.test/run", {
    method: "POST",
    body: JSON.stringify({ agent_name: name, instructions: "Begin.", ...(payload === undefined ? {} : { payload }) }),
    headers: { Authorization: `Bearer ${ADMIN}`, "Idempotency-Key": key },
  });
  expect(response.status, await response.clone().text()).toBe(200);
  return response.json();
};
const then = (first: ModelOutcome, after: (told: readonly string[]) => string) => (request: ModelRequest) =>
  results(request).length === 0 ? first : says(after(results(request)));

beforeEach(async () => {
  await define("refund");
  await define("letter");
  await define("sorter", "sub_agents: [refund, letter]\ntools: { allowed: [] }");
});

describe("[DG1] an agent with sub_agents", () => {
  test("is offered a tool for each of them, and gets the report of what it has handed on", async () => {
    act({
      sorter: then(
        uses(hands("refund", "Decide about 49 SEK.", { payload: { order: "#1042" } })),
        ([told]) => `It is decided. ${told?.includes("approve")}`,
      ),
      refund: () => says("approve"),
    });
    const report = await run("sorter");
    expect(report).toMatchObject({ status: "completed", summary: "It is decided. true" });
    const [first] = calledAs("sorter");
    expect(first?.tools.map(({ name }) => name)).toEqual(["delegate_to_letter", "delegate_to_refund"]);
    expect(first?.tools.find(({ name }) => name === "delegate_to_refund")?.description).toContain("Does refund.");
    const [asked] = calledAs("refund");
    const message = JSON.stringify(asked?.messages);
    expect(message).toContain("Decide about 49 SEK.");
    expect(message).toContain("#1042");
    expect(message).not.toContain("Begin.");
    expect(asked?.tools.map(({ name }) => name)).toContain("gsv__ReadFile");
    expect(asked?.tools.map(({ name }) => name).filter((name) => name.startsWith("delegate"))).toEqual([]);
  });
  test("[DG8] and its report has the tree of what was handed on, with its cost in the sum", async () => {
    await define("refund", "sub_agents: [letter]");
    act({
      sorter: then(uses(hands("refund", "Decide."), hands("letter", "Write.")), () => "ok"),
      refund: then(uses(hands("letter", "Write a refusal.")), () => "refused"),
    });
    const report = await run("sorter");
    expect(report.delegations?.map(({ agent_name, depth, status }) => [agent_name, depth, status])).toEqual([
      ["refund", 1, "completed"],
      ["letter", 2, "completed"],
      ["letter", 1, "completed"],
    ]);
    // Six calls of the model in all: sorter 2, refund 2, letter twice 1.
    expect(report.cost_usd).toBeCloseTo(0.006, 9);
    expect(stage.calls).toHaveLength(6);
    const why = await stage.peer.ok<{ steps: { calls: { handedTo?: string }[] }[] }>("run.why", {
      sessionKey: report.metadata.session_key,
    });
    expect(why.steps[0]?.calls.map(({ handedTo }) => handedTo)).toEqual(
      report.delegations?.filter(({ depth }) => depth === 1).map(({ session_key }) => session_key),
    );
    // For session, day and month each call counts once, where it was made.
    const own = await stage.peer.ok<{ tokens: { costUsd?: number } }>("session.get", { sessionKey: report.metadata.session_key });
    expect(own.tokens.costUsd).toBeCloseTo(0.002, 9);
  });
});

describe("[DG2] [DG3] what may not be handed on", () => {
  test("is an error of the call, and the run goes on", async () => {
    await define("deep");
    await define("letter", "sub_agents: [deep]");
    await define("refund", "sub_agents: [letter]");
    act({
      sorter: then(uses(hands("refund", "Decide.")), ([told]) => told ?? ""),
      refund: then(uses(hands("letter", "Write.")), ([told]) => told ?? ""),
      letter: then(uses(hands("deep", "Look.")), ([told]) => told ?? ""),
    });
    const report = await run("sorter");
    expect(report.status).toBe("completed");
    expect(report.summary).toContain("This delegation would have depth 3; the limit is 2");
    expect(calledAs("deep")).toHaveLength(0);
  });
  test("[DG3] is limited by the smallest depth in the chain, also when an agent below may go deeper", async () => {
    await define("letter");
    await define("refund", "sub_agents: [letter]\nautonomy: { max_delegation_depth: 5 }");
    await define("sorter", "sub_agents: [refund]\nautonomy: { max_delegation_depth: 1 }");
    act({
      sorter: then(uses(hands("refund", "Decide.")), ([told]) => told ?? ""),
      refund: then(uses(hands("letter", "Write.")), ([told]) => told ?? ""),
    });
    const report = await run("sorter");
    expect(report.summary).toContain("This delegation would have depth 2; the limit is 1");
    expect(calledAs("letter")).toHaveLength(0);
  });
  test("[DG8] is limited to 64 open tasks in the whole gateway, and goes on when one of them has ended", async () => {
    const open = Array.from({ length: 64 }, (_, at) => ({
      ...{ id: `open-${at}`, agentId: "refund", name: "refund", parentKey: "agent:sorter:other", parentRun: "r" },
      ...{ callId: `c${at}`, sessionKey: `agent:refund:task:open-${at}` },
    }));
    const store = <T>(work: (store: DelegationStore) => T) =>
      runInDurableObject(gateway(), (_gateway, state) => work(new DelegationStore(state.storage)));
    await store((delegations) => {
      for (const task of open) delegations.add(task);
    });
    act({ sorter: then(uses(hands("refund", "Decide.")), ([told]) => told ?? "") });
    expect((await run("sorter", "full")).summary).toContain("64 delegated tasks are open, which is the limit.");
    expect(calledAs("refund")).toHaveLength(0);
    await store((delegations) => delegations.close("open-0"));
    expect((await run("sorter", "free")).summary).toContain("done");
    expect(calledAs("refund")).toHaveLength(1);
  });
  test("an agent that the definition no longer names is not asked, also when the model still knows its tool", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    act({
      sorter: async (request) => {
        if (results(request).length > 0) return says(results(request)[0] ?? "");
        await promise;
        return uses(hands("refund", "Decide."));
      },
    });
    const going = run("sorter");
    await eventually(() => expect(calledAs("sorter")).toHaveLength(1));
    await define("sorter", "sub_agents: [letter]");
    resolve();
    expect((await going).summary).toContain("does not let it delegate tasks to refund");
    expect(calledAs("refund")).toHaveLength(0);
  });
});

test("[DG2] an agent whose definition is out of force gets no task, and the audit names who still delegates to it", async () => {
  const named = async (action: string): Promise<readonly (string | undefined)[]> =>
    (await stage.peer.ok<{ entries: { action: string; target?: string; detail?: string }[] }>("audit.list", { limit: 50 })).entries
      .filter((entry) => entry.action === action && entry.detail?.includes("sub_agents") === true)
      .map(({ detail }) => detail?.replace(/^[0-9a-f]{16}\. /, ""));
  expect(await stage.peer.ok("agents.undefine", { agentId: "refund" })).toEqual({ ok: true, removed: true, stillNamedBy: ["sorter"] });
  act({ sorter: then(uses(hands("refund", "Decide.")), ([told]) => told ?? "") });
  const report = await run("sorter");
  expect(report.status).toBe("completed");
  expect(report.summary).toContain("The agent refund has no current definition, so no task can be delegated to it.");
  expect(report.summary).toContain("gsv agent edit refund");
  expect(report.delegations).toBeUndefined();
  await eventually(async () => expect(await named("agents.undefine")).toEqual(["Still in sub_agents of sorter: refund"]));
  const renamed = await stage.peer.ok("agents.define", {
    text: "metadata: { id: letter, name: post }\ncore_context: { system_prompt: Hi }\n",
  });
  expect(renamed).toMatchObject({ created: false, stillNamedBy: ["sorter"] });
  await eventually(async () => expect(await named("agents.define")).toEqual(["Still in sub_agents of sorter: letter"]));
  expect(await stage.peer.ok("agents.delete", { agentId: "refund", sessions: true })).toMatchObject({ stillNamedBy: ["sorter"] });
  expect(await stage.peer.ok("agents.undefine", { agentId: "sorter" }), "no agent hands tasks to it").toEqual({ ok: true, removed: true });
  await eventually(async () => expect(await named("agents.delete")).toEqual(["Still in sub_agents of sorter: refund"]));
});

describe("[DG4] the budget of a task", () => {
  test("is what the run above has left, parted among the tasks at once", async () => {
    await define("sorter", "sub_agents: [refund, letter]\nautonomy: { cost_budget_usd: 0.021 }");
    const loops = (request: ModelRequest): ModelOutcome => uses(["gsv__ReadFile", { path: `none-${request.messages.length}.md` }]);
    act({
      sorter: then(uses(hands("refund", "Decide."), hands("letter", "Write.")), (told) => told.join(" ")),
      refund: loops,
      letter: loops,
    });
    const report = await run("sorter");
    const costs = report.delegations?.map(({ cost_usd }) => cost_usd) ?? [];
    expect(costs).toHaveLength(2);
    expect(report.delegations?.map(({ status }) => status)).toEqual(["budget_exceeded", "budget_exceeded"]);
    for (const cost of costs) {
      expect(cost).toBeGreaterThan(0);
      expect(cost).toBeLessThanOrEqual(0.01 + 1e-9);
    }
    expect(report.cost_usd).toBeLessThanOrEqual(0.021 + 1e-9);
  });
});

/** Everything is killed while the task of `sorter` runs, after `meanwhile`; then the same request is sent again. */
async function killedInTask(meanwhile: () => Promise<unknown> = async () => undefined): ReturnType<typeof run> {
  let isHeld = true;
  act({
    sorter: then(uses(hands("refund", "Decide.")), ([told]) => `told ${told?.includes("approve")}`),
    refund: async () => {
      while (isHeld) await scheduler.wait(2);
      return says("approve");
    },
  });
  const lost = run("sorter").catch(() => undefined);
  await eventually(() => expect(calledAs("refund")).toHaveLength(1));
  await meanwhile();
  await abortAllDurableObjects();
  await lost;
  stage.peer = await client();
  isHeld = false;
  return run("sorter");
}

describe("[DG5] a kill", () => {
  test("[P12] [W2] of everything while the task runs: one task, one report", async () => {
    const report = await killedInTask();
    expect(report).toMatchObject({ status: "completed", summary: "told true" });
    expect(report.delegations).toHaveLength(1);
    // The call that was cut is made again; nothing else is.
    expect(calledAs("refund").length).toBeLessThanOrEqual(2);
  });
  /** The run of the sorter has handed a task to refund, whose call of the model does not end by itself. */
  async function heldBelow<T>(
    begin: () => Promise<T>,
  ): Promise<{ readonly going: Promise<T>; readonly above: string; readonly below: string }> {
    act({
      sorter: then(uses(hands("refund", "Decide.")), () => "never"),
      refund: async ({ signal }) => {
        while (!signal.aborted) await scheduler.wait(2);
        return says("approve");
      },
    });
    const going = begin();
    await eventually(() => expect(calledAs("refund")).toHaveLength(1));
    const { sessions } = await stage.peer.ok<{ sessions: { sessionKey: string }[] }>("sessions.list", {});
    const of = (agent: string): string =>
      sessions.find(({ sessionKey }) => sessionKey.startsWith(`agent:${agent}:task:`))?.sessionKey ?? "";
    return { going, above: of("sorter"), below: of("refund") };
  }
  const endOf = async (sessionKey: string) => (await stage.peer.ok<{ end: string }>("run.why", { sessionKey })).end;
  test("when the run above is stopped, the task is ended at once, and the report says so", async () => {
    const { going, above, below } = await heldBelow(() => run("sorter"));
    await stage.peer.ok("chat.abort", { sessionKey: above });
    expect(await going).toMatchObject({ status: "cancelled", delegations: [{ agent_name: "refund", status: "cancelled" }] });
    expect(await endOf(below)).toBe("aborted");
  });
  test("when a run in a conversation is stopped, which makes no report, the task is ended at once", async () => {
    const sessionKey = "agent:sorter:cli:dm:main";
    const { below } = await heldBelow(() => stage.peer.ok("chat.send", { sessionKey, messageId: "m1", message: "Begin.", runId: "r1" }));
    await stage.peer.ok("chat.abort", { sessionKey });
    await eventually(async () => {
      await alarm();
      expect(await endOf(below)).toBe("aborted");
    });
  });
  test("when the conversation above is deleted, the task is ended at once", async () => {
    const { going, above, below } = await heldBelow(() => run("sorter"));
    going.catch(() => undefined);
    await stage.peer.ok("session.delete", { sessionKey: above, stop: true });
    await eventually(async () => {
      await alarm();
      expect(await endOf(below)).toBe("aborted");
    });
  });
});

describe("[DG6] a task", () => {
  test("that fails is the report of the call, and a note in the conversation above", async () => {
    act({
      sorter: then(uses(hands("refund", "Decide.")), ([told]) => told ?? ""),
      refund: () => ({ kind: "failed", error: { reason: "model.refused" as never, message: "The model says no." }, retryable: false }),
    });
    const report = await run("sorter");
    expect(report).toMatchObject({ status: "completed", delegations: [{ status: "failed" }] });
    expect(report.summary).toContain("The model says no.");
    const { events } = await stage.peer.ok<{ events: { payload: { text?: string } }[] }>("session.subscribe", {
      sessionKey: report.metadata.session_key,
      afterSeq: 0,
    });
    expect(events.map(({ payload }) => payload.text ?? "").filter((text) => text.includes("did not end well (failed)"))).toHaveLength(1);
  });
  test("that waits for the owner tells them once, and goes on with their word", async () => {
    await stage.peer.ok("config.set", { path: "toolApproval", value: { mode: "ask" } });
    act({
      sorter: then(uses(hands("refund", "Decide.")), ([told]) => `told ${told?.includes("written")}`),
      refund: then(uses(["gsv__WriteFile", { path: "SOUL.md", content: "x" }]), () => "written"),
    });
    const going = run("sorter");
    let code = "";
    await eventually(async () => {
      const { approvals } = await stage.peer.ok<{ approvals: { code: string }[] }>("approval.list", {});
      expect(approvals).toHaveLength(1);
      code = approvals[0]?.code ?? "";
    });
    await eventually(async () => {
      const { notifications } = await stage.peer.ok<{ notifications: { kind: string; text: string }[] }>("notifications.list", {});
      expect(notifications.filter(({ text }) => text.startsWith("A task of the agent refund waits for your word"))).toHaveLength(1);
    });
    // Who waits for the run above is told, too.
    expect(await going).toMatchObject({ status: "awaiting_approval", metadata: { approvals: [code] } });
    await stage.peer.ok("approval.resolve", { code, decision: "allow" });
    expect(await run("sorter")).toMatchObject({ status: "completed", summary: "told true" });
    const { notifications } = await stage.peer.ok<{ notifications: { kind: string; overAt?: number }[] }>("notifications.list", {});
    expect(notifications.filter(({ kind, overAt }) => kind === "approval" && overAt === undefined)).toEqual([]);
  });
});

test("[DG2] [DG5] a change of the definition ends no task that has begun", async () => {
  const report = await killedInTask(() => define("sorter", "sub_agents: [letter]"));
  expect(report).toMatchObject({ status: "completed", summary: "told true" });
});

describe("[DG7] [TH5] what was read", () => {
  const soul: Call = ["gsv__WriteFile", { path: "SOUL.md", content: "x" }];
  const asks = async (): Promise<void> => {
    let code = "";
    await eventually(async () => {
      const { approvals } = await stage.peer.ok<{ approvals: { code: string; rule: string }[] }>("approval.list", {});
      expect(approvals).toMatchObject([{ rule: "taint:world" }]);
      code = approvals[0]?.code ?? "";
    });
    await stage.peer.ok("approval.resolve", { code, decision: "deny" });
  };
  beforeEach(async () => {
    await stage.peer.ok("config.set", { path: "toolApproval", value: { mode: "auto" } });
    await define("sorter", "sub_agents: [refund, letter]");
  });
  test("above labels the task", async () => {
    act({ sorter: then(uses(hands("refund", "Decide.")), () => "ok"), refund: then(uses(soul), () => "denied") });
    const going = run("sorter", "k", { letter: "from a customer" });
    await asks();
    const report = await going;
    const [below] = report.delegations ?? [];
    const { origin } = await stage.peer.ok<{ origin: string }>("run.why", { sessionKey: below?.session_key });
    expect(origin).toContain(`task ${below?.task_id} of ${report.metadata.session_key}`);
  });
  test("by the task labels the run above", async () => {
    // A file with the label of what was read when it was written.
    act({ refund: then(uses(["gsv__WriteFile", { path: "notes.md", content: "from outside" }]), () => "written") });
    await run("refund", "first", { letter: "from a customer" });
    act({
      sorter: (request) =>
        results(request).length === 0 ? uses(hands("refund", "Decide.")) : results(request).length === 1 ? uses(soul) : says("denied"),
      refund: then(uses(["gsv__ReadFile", { path: "notes.md" }]), ([text]) => text ?? ""),
    });
    const going = run("sorter", "third");
    await asks();
    expect(await going).toMatchObject({ status: "awaiting_approval" });
    expect(await run("sorter", "third")).toMatchObject({ summary: "denied" });
  });
  test("by a task that failed labels the run above as well", async () => {
    act({ refund: then(uses(["gsv__WriteFile", { path: "notes.md", content: "from outside" }]), () => "written") });
    await run("refund", "first", { letter: "from a customer" });
    act({
      sorter: (request) =>
        results(request).length === 0 ? uses(hands("refund", "Decide.")) : results(request).length === 1 ? uses(soul) : says("denied"),
      refund: (request) =>
        results(request).length === 0
          ? uses(["gsv__ReadFile", { path: "notes.md" }])
          : { kind: "failed", error: { reason: "model.refused" as never, message: "do what I say" }, retryable: false },
    });
    const going = run("sorter", "second");
    await asks();
    expect(await going).toMatchObject({ status: "awaiting_approval" });
  });
  test("[TA9] files of a machine label the run above, the task, and what is remembered", async () => {
    const lap = await node("lap");
    const reads: Call = ["lap__Read", { path: "README.md" }];
    const answered = async (times: number): Promise<void> => {
      await eventually(() => expect(lap.events("tool.invoke")).toHaveLength(times));
      const { callId } = lap.events("tool.invoke").map(({ payload }) => payload as { callId: string })[times - 1] ?? { callId: "" };
      await lap.ok("tool.result", { callId, outcome: "ok", result: { content: "read me" } });
    };
    const asksFor = async (rule: RegExp): Promise<void> => {
      let code = "";
      await eventually(async () => {
        const { approvals } = await stage.peer.ok<{ approvals: { code: string; why: string }[] }>("approval.list", {});
        expect(approvals.map(({ why }) => why).join()).toMatch(rule);
        code = approvals[0]?.code ?? "";
      });
      await stage.peer.ok("approval.resolve", { code, decision: "deny" });
    };
    await define("letter", "memory_config: { long_term_enabled: true }");
    act({
      sorter: (request) => {
        const told = results(request).length;
        if (told === 0) return uses(hands("refund", "Read."));
        if (told === 1) return uses(hands("letter", "Remember it."));
        return told === 2 ? uses(soul) : says("denied");
      },
      refund: then(uses(reads), ([text]) => text ?? ""),
      letter: then(uses(["remember", { text: "The readme says: read me." }]), () => "remembered"),
    });
    // The owner's own conversation, which may change SOUL.md without a question until it has read files.
    await stage.peer.ok("chat.send", { sessionKey: "agent:sorter:cli:dm:main", message: "Begin.", messageId: "m1", runId: "r1" });
    await answered(1);
    await asksFor(/files|No one knows who wrote/);
    const { memories } = await stage.peer.ok<{ memories: { label: string }[] }>("memory.list", { agentId: "letter" });
    expect(memories).toMatchObject([{ label: "files" }]);
  });
  test("[PO8] the mode that was chosen for the run holds for the task; `full` does not", async () => {
    await stage.peer.ok("config.set", { path: "toolApproval", value: { defaultDecision: "allow" } });
    act({ sorter: then(uses(hands("refund", "Decide.")), () => "ok"), refund: then(uses(soul), () => "tried") });
    await stage.peer.ok("chat.send", {
      sessionKey: "agent:sorter:cli:dm:main",
      message: "Begin.",
      messageId: "m1",
      runId: "r1",
      directives: { mode: "auto" },
    });
    await eventually(async () => {
      const { approvals } = await stage.peer.ok<{ approvals: { tool: string }[] }>("approval.list", {});
      expect(approvals).toHaveLength(1);
    });
  });
});

test("[DG3] no chain begins again: a delegated run writes to no other conversation, and a message of one delegates nothing", async () => {
  await stage.peer.ok("config.set", { path: "toolApproval", value: { defaultDecision: "allow" } });
  await stage.peer.ok("chat.send", { sessionKey: "agent:refund:cli:dm:main", message: "hello", messageId: "m0", runId: "r0" });
  await stage.peer.ok("chat.send", { sessionKey: "agent:sorter:cli:dm:main", message: "hello", messageId: "m0", runId: "r00" });
  await eventually(() => expect(calledAs("sorter")).toHaveLength(1));
  const sends = (to: string): Call => ["gsv__SessionSend", { sessionKey: to, message: "Go on." }];
  act({
    sorter: (request) => {
      const told = results(request).at(-1);
      if (JSON.stringify(request.messages.at(-1)).includes("Message from another conversation")) return uses(hands("refund", "Again."));
      return told === undefined ? uses(hands("refund", "Decide.")) : says(told);
    },
    refund: then(uses(sends("agent:sorter:cli:dm:main")), ([told]) => told ?? ""),
  });
  await define("sorter", "sub_agents: [refund, letter]");
  expect((await run("sorter")).summary).toContain("A delegated task writes to no other conversation");
  act({
    sorter: (request) => (results(request).length === 0 ? uses(hands("refund", "Again.")) : says(results(request)[0] ?? "")),
    letter: then(
      uses(["gsv__SessionSend", { sessionKey: "agent:sorter:cli:dm:main", message: "Go on.", waitSeconds: 10 }]),
      ([told]) => told ?? "",
    ),
  });
  expect((await run("letter", "l")).summary).toContain("cannot delegate");
});
