/** Reminders: the owner is told a text at a time, with the real gateway, its alarm and its notifications. */
import { abortAllDurableObjects, runInDurableObject } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import type { ResultOf } from "../../../../protocol/gen/methods.ts";
import type { CronAddParams } from "../../../../protocol/gen/types.ts";
import { says } from "../../session/support.ts";
import { client, eventually, FAR, gateway } from "../../support/gateway.ts";
import * as support from "./support.ts";
import { alarm, annAndBobWrite, asked, HOUR, jobStage, task, useWhatsapp } from "./support.ts";
import { evict } from "../../support/evict.ts";

const stage = jobStage();
const { calls } = stage;
const dentist = (more: Partial<CronAddParams> = {}): CronAddParams =>
  task({ name: "Dentist", schedule: { kind: "at", atMs: FAR + HOUR }, spec: { mode: "remind", text: "Call the dentist." }, ...more });
const told = async () => (await stage.peer.ok<ResultOf<"notifications.list">>("notifications.list", {})).notifications;
const comes = (jobId?: string) => support.becomes(stage, "ok", jobId);

describe("[SC16] a reminder", () => {
  it("tells the owner its text at its time, and calls no model", async () => {
    await support.add(stage, dentist());
    support.pass(stage, HOUR);
    expect(await comes()).toMatchObject({ ts: FAR + HOUR, summary: "Reminder: Call the dentist." });
    expect(await support.shownIn(stage)).toEqual(["Reminder: Call the dentist."]);
    expect(calls).toHaveLength(0);
    await eventually(async () => {
      await alarm();
      expect(await told()).toMatchObject([{ kind: "reminder", text: "Reminder: Call the dentist.", state: "told" }]);
    });
    expect(await support.shownIn(stage)).toHaveLength(1);
    expect((await stage.peer.ok<ResultOf<"cron.list">>("cron.list")).jobs).toHaveLength(0);
  });
  it("is known to the agent with the owner's next message", async () => {
    await support.add(stage, dentist());
    support.pass(stage, HOUR);
    await comes();
    await stage.peer.ok("chat.send", { sessionKey: "agent:main:main", message: "done", messageId: "m1", runId: "r1" });
    await eventually(() => expect(calls).toHaveLength(1));
    expect(asked(calls[0])).toContain("Reminder: Call the dentist.");
  });
  it("arrives also when no model answers, and says how late it is", async () => {
    stage.answer = () => {
      throw new Error("The provider is down.");
    };
    await support.add(stage, dentist());
    support.pass(stage, 100 * HOUR);
    await comes();
    const [text = ""] = await support.shownIn(stage);
    expect(text).toMatch(/^Reminder: Call the dentist\.\n\n\(4 days late: it was due at \d{4}-\d\d-\d\d \d\d:\d\d \(.+\)\)$/);
  });
  it("goes to the owner's own chat that was active last, and to no guest", async () => {
    const sent = useWhatsapp();
    await annAndBobWrite(stage, sent);
    const before = sent.length;
    await support.add(stage, dentist());
    support.pass(stage, HOUR);
    await comes();
    await eventually(async () => {
      await alarm();
      expect(sent).toHaveLength(before + 1);
    });
    expect(sent.at(-1)).toMatchObject({ text: "Reminder: Call the dentist.", peer: { kind: "dm", id: "ann" } });
    expect(await told()).toMatchObject([{ toldIn: "whatsapp/default/dm/ann" }]);
  });
  it("[K28] is told once when it is killed between the telling and the end of its row", async () => {
    await support.add(stage, dentist({ schedule: { kind: "every", everyMs: HOUR } }));
    support.pass(stage, HOUR);
    await comes();
    await runInDurableObject(gateway(), (_gateway, state) => {
      state.storage.sql.exec("UPDATE cron_runs SET status = 'waiting', check_at = ?", stage.now);
    });
    await abortAllDurableObjects();
    stage.peer = await client();
    await comes();
    expect(await support.shownIn(stage)).toHaveLength(1);
    expect(await told()).toHaveLength(1);
  });
  it("[SC10] waits for `gsv resume` while GSV is stopped", async () => {
    await support.add(stage, dentist());
    await stage.peer.ok("gateway.stop", {});
    support.pass(stage, HOUR);
    await alarm();
    await evict(gateway());
    stage.peer = await client();
    expect(await told()).toEqual([]);
    await stage.peer.ok("gateway.resume", {});
    support.pass(stage, HOUR);
    await comes();
    expect(await told()).toHaveLength(1);
  });
  it("whose place does not take it is told where reminders without a place are, and is an error", async () => {
    const to = "whatsapp/default/dm/31600000000@s.whatsapp.net";
    await support.add(stage, dentist({ spec: { mode: "remind", text: "Call the dentist.", to } }));
    support.pass(stage, HOUR);
    const run = await support.becomes(stage, "error");
    expect(run.error).toMatch(/^It could not be sent to its place, so it is in your conversation\. /);
    expect(await support.shownIn(stage)).toEqual(["Reminder: Call the dentist."]);
    expect(await told()).toMatchObject([{ kind: "reminder" }]);
  });
  it("with a place goes there alone, and the agent knows of it", async () => {
    const sent = useWhatsapp();
    await annAndBobWrite(stage, sent);
    const before = sent.length;
    const to = "whatsapp/default/dm/ann";
    await support.add(stage, dentist({ spec: { mode: "remind", text: "Call the dentist.", to } }));
    support.pass(stage, HOUR);
    await comes();
    expect(sent.slice(before)).toMatchObject([{ text: "Reminder: Call the dentist.", peer: { id: "ann" } }]);
    expect(await told()).toEqual([]);
    stage.answer = () => says("Well done.");
    const asks = calls.length;
    await stage.peer.ok("chat.send", { sessionKey: "agent:main:main", message: "done", messageId: "m1", runId: "r1" });
    await eventually(() => expect(calls).toHaveLength(asks + 1));
    expect(asked(calls.at(-1))).toContain("Reminder: Call the dentist.");
  });
  it("to a place that is none is refused", async () => {
    const refused = await stage.peer.refused("cron.add", dentist({ spec: { mode: "remind", text: "x", to: "somewhere" } }));
    expect(refused).toMatchObject({ reason: "channel.unknown" });
  });
});
