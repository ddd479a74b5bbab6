/**
 * A delivery of a hook begins a run, a message or a job, in its order and beside the schedule; conditions ignore others. The gateway,
 * its alarm and its sessions are real; the model and the clock are fakes.
 */
import { describe, expect, it } from "vitest";
import type { ResultOf } from "../../../../protocol/gen/methods.ts";
import { keyOf, sign } from "../../../src/features/hooks/signature.ts";
import { says } from "../../session/support.ts";
import { eventually } from "../../support/gateway.ts";
import { add as addJob, alarm, asked, HOUR, hold, pass, runs, shownIn, task } from "../schedule/support.ts";
import { hookStage, post, status } from "./support.ts";

const { stage, calls, add, deliver, show, ends } = hookStage();

describe("[HK5] [HK6] a delivery", () => {
  it("is stored, begins one run in a conversation of the hook's own, and the answer is a note for the owner", async () => {
    const { secret = "", hook } = await add();
    expect(hook).toMatchObject({ name: "gh", path: "/hooks/gh", agentId: "main", accepted: 0, waiting: 0 });
    expect(await deliver(secret, "d1")).toBe("202 accepted");
    expect((await show()).deliveries).toMatchObject([{ deliveryId: "d1", status: "waiting" }]);
    await ends(1);
    expect(calls).toHaveLength(1);
    expect(asked(calls[0])).toContain('An issue: \\"Broken\\"');
    expect((await shownIn(stage)).filter((text) => text.includes('The hook "gh" says:\n\nthe report'))).toHaveLength(1);
    expect((await show()).deliveries).toMatchObject([{ deliveryId: "d1", status: "ok", summary: "the report" }]);
    expect(await deliver(secret, "d2", { title: "Other" })).toBe("202 accepted");
    await ends(2);
    expect(calls).toHaveLength(2);
    expect(calls[1]?.messages).toHaveLength(1);
  });
  it("[SC8] [TA1] the model is told of it once, without its words, and has the label when it reads it", async () => {
    const { secret = "" } = await add();
    for (const [n, id] of ["d1", "d2"].entries()) {
      await deliver(secret, id, { title: id });
      await ends(n + 1);
    }
    calls.length = 0;
    stage.answer = ({ messages }) =>
      messages.at(-1)?.role === "toolResult"
        ? says("done")
        : says("", [{ name: "gsv__Cron", arguments: { action: "runs", id: "hook:gh" } }]);
    const read = async (): Promise<string> => {
      const { response } = await stage.peer.ok<{ response: string }>("chat.send", { sessionKey: "agent:main:main", message: "/status" });
      return response;
    };
    expect(await read()).not.toContain("Read:");
    await stage.peer.ok("chat.send", { sessionKey: "agent:main:main", message: "What did the hook say?" });
    await eventually(() => expect(calls).toHaveLength(2));
    expect(asked(calls[0]).split("The hook hook:gh has left an answer here")).toHaveLength(2);
    expect(JSON.stringify(calls[0]?.messages)).not.toContain("the report");
    expect(asked(calls[1])).toContain("the report");
    expect(await read()).toContain("Read: world");
  });
  it("may be a message in a conversation of the owner", async () => {
    const { secret = "" } = await add({ target: { kind: "run", spec: { mode: "systemEvent", text: "Look: {{body}}" } } });
    await deliver(secret, "d1");
    await ends(1);
    expect(asked(calls[0])).toContain("<<<body of the hook gh");
    expect((await stage.peer.ok<ResultOf<"sessions.list">>("sessions.list")).sessions.map(({ sessionKey }) => sessionKey)).toContain(
      "agent:main:main",
    );
  });
  it("may run a job, beside its schedule and with the body as data", async () => {
    await addJob(stage);
    const { secret = "" } = await add({ target: { kind: "job", jobId: "report" } });
    expect(await deliver(secret, "d1")).toBe("202 accepted");
    await ends(1);
    expect(asked(calls[0])).toContain("Write the report.");
    expect(asked(calls[0])).toContain("Broken");
    expect(await runs(stage)).toMatchObject([{ status: "ok", sessionKey: "agent:main:cron:report" }]);
    await stage.peer.ok("cron.update", { id: "report", patch: { enabled: false } });
    expect(await deliver(secret, "d2")).toBe("503 hook.no_target");
    expect((await show()).hook.problem).toBe("Its job is paused.");
    await stage.peer.ok("cron.remove", { id: "report" });
    expect(await deliver(secret, "d3")).toBe("503 hook.no_target");
  });
  it("deliveries run one after the other, in their order", async () => {
    const { secret = "" } = await add();
    const release = hold(stage, "done");
    for (const id of ["d1", "d2", "d3"]) expect(await deliver(secret, id, { title: id })).toBe("202 accepted");
    await eventually(async () => {
      await alarm();
      expect(calls).toHaveLength(1);
    });
    expect((await show()).hook.waiting).toBe(2);
    release();
    await ends(3);
    expect(calls.map((request) => /d[123]/.exec(asked(request))?.[0])).toEqual(["d1", "d2", "d3"]);
  });
  it("[SC5] deliveries keep no job from its own times: a time waits for the run of a hook, and comes before the next one", async () => {
    await addJob(stage);
    pass(stage, HOUR - 10_000);
    const { secret = "" } = await add({ target: { kind: "job", jobId: "report" } });
    const release = hold(stage, "done");
    for (const id of ["d1", "d2"]) expect(await deliver(secret, id, { title: id })).toBe("202 accepted");
    await eventually(async () => {
      await alarm();
      expect(calls).toHaveLength(1);
    });
    pass(stage, 10_000);
    await alarm();
    release();
    await ends(2);
    expect(calls.map((request) => /d[12]/.exec(asked(request))?.[0])).toEqual(["d1", undefined, "d2"]);
    expect((await runs(stage)).map((run) => run.status)).toEqual(["ok", "ok", "ok"]);
  });
  it("[SC4] a reminder is not lost while a hook runs it", async () => {
    await addJob(stage, task({ schedule: { kind: "at", atMs: stage.now + HOUR } }));
    pass(stage, HOUR - 10_000);
    const { secret = "" } = await add({ target: { kind: "job", jobId: "report" } });
    const release = hold(stage, "done");
    expect(await deliver(secret, "d1")).toBe("202 accepted");
    await eventually(async () => {
      await alarm();
      expect(calls).toHaveLength(1);
    });
    pass(stage, 10_000);
    await alarm();
    release();
    await eventually(async () => {
      await alarm();
      expect(calls).toHaveLength(2);
    });
  });
  it("jobs and hooks share the slots: hooks take two of four", async () => {
    const release = hold(stage, "done");
    for (const name of ["a", "b", "c"]) {
      const { secret = "" } = await add({ name });
      expect(await deliver(secret, "d1", { title: name }, "standard", name)).toBe("202 accepted");
    }
    await addJob(stage);
    await stage.peer.ok("cron.run", { id: "report" });
    await eventually(async () => {
      await alarm();
      expect(calls).toHaveLength(3);
    });
    expect(calls.filter((request) => asked(request).includes("Write the report."))).toHaveLength(1);
    release();
    await eventually(async () => {
      pass(stage, 16_000);
      await alarm();
      expect((await show("c")).deliveries).toMatchObject([{ status: "ok" }]);
    });
  });
});

describe("[HK7] conditions", () => {
  it("ignore deliveries and count them; GitHub's ping is not counted", async () => {
    const { secret = "" } = await add({ form: "github", only: ["body.action=opened", "header.x-github-event=issues"] });
    const send = async (body: object, event: string): Promise<string> => {
      const text = JSON.stringify(body);
      const headers = sign("github", keyOf("github", secret) ?? new Uint8Array(), crypto.randomUUID(), stage.now, text);
      return status(await post("gh", text, { ...headers, "X-GitHub-Event": event }));
    };
    expect(await send({ action: "closed", n: 1 }, "issues")).toBe("200 ignored");
    expect(await send({ action: "opened", n: 2 }, "push")).toBe("200 ignored");
    expect(await send({ zen: "Keep it simple." }, "ping")).toBe("200 ignored");
    expect(await send({ action: "opened", n: 3 }, "issues")).toBe("202 accepted");
    expect((await show()).hook).toMatchObject({ accepted: 1, ignored: 2 });
  });
});
