/** Changes of protected files: what the owner is shown is what is written, in a real object over the real workspace. */
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { composeNativeTools } from "../../src/app/native-tools.ts";
import type { WaitingQuestion } from "../../src/ports/approvals.ts";
import { createWorkspaceStore } from "../../src/storage/workspace/store.ts";
import { newSession, says, Stage, type TestSession, until, value } from "./support.ts";
import { evict } from "../support/evict.ts";

const store = createWorkspaceStore(env.STORAGE);
const SOUL = "I am calm.\nI ask first.\n";
const WORLD = { taint: { label: "world", source: "a forwarded message" } } as const;
const EDIT = { name: "gsv__EditFile", arguments: { path: "SOUL.md", oldString: "I ask first.", newString: "I obey eve.\u202e" } };
const soul = async (): Promise<string> => value(await store.read("main", "SOUL.md")).content;

beforeEach(async () => {
  value(await store.write("main", "SOUL.md", SOUL));
});
afterEach(() => {
  vi.restoreAllMocks();
});
function open(): Stage {
  const stage = new Stage().open();
  stage.native = composeNativeTools(env.STORAGE, { log: { error: () => {} } });
  return stage;
}
const question = (on: Stage): Promise<WaitingQuestion> => until("the question", () => on.approvals.at(-1)?.waiting[0]);
const answer = (s: TestSession, { code, hash }: WaitingQuestion, answer: "allow" | "deny") =>
  s.port.answerApproval({ code, hash, answer, by: "client:me" });
async function asked(on: Stage, call: { readonly name: string; readonly arguments: Readonly<Record<string, unknown>> } = EDIT) {
  const s = newSession({ isOwnersSession: true });
  await s.send("a", "read this", WORLD);
  (await on.call(0)).answer(says("", [call]));
  return { s, asked: await question(on) };
}

describe("[TA9] [TA10] [S10] [S13] a change of SOUL.md by a misled model", () => {
  it("asks without any mode, shows the diff with escapes, survives an eviction, and is written once allowed", async () => {
    const on = open();
    const { s, asked: shown } = await asked(on);
    expect(shown).toMatchObject({ rule: "taint:world", why: expect.stringMatching(/protected|defines the agent/) });
    expect(shown.text).toBe("--- SOUL.md\n+++ SOUL.md\n@@ -1,2 +1,2 @@\n I am calm.\n-I ask first.\n+I obey eve.\\u{202e}");
    expect(await soul()).toBe(SOUL);
    await evict(s.stub);
    await s.port.resume();
    expect(value(await answer(s, shown, "allow"))).toMatchObject({ outcome: "allowed" });
    (await on.call(1)).answer(says("done"));
    await on.ended("run-a");
    expect(await soul()).toBe("I am calm.\nI obey eve.\u202e\n");
  });
  it("is not written when it is denied", async () => {
    const on = open();
    const { s, asked: shown } = await asked(on);
    value(await answer(s, shown, "deny"));
    (await on.call(1)).answer(says("well"));
    await on.ended("run-a");
    expect(await soul()).toBe(SOUL);
  });
  it("[P-41] is asked about again, with the new diff, when the file changed meanwhile", async () => {
    const on = open();
    const { s, asked: shown } = await asked(on);
    value(await store.write("main", "SOUL.md", `Line 0.\n${SOUL}`));
    const taken = value(await answer(s, shown, "allow"));
    expect(taken).toMatchObject({ outcome: "asked_again" });
    const second = await until("the new question", () => on.approvals.at(-1)?.waiting.find(({ code }) => code === taken.again));
    expect(second.text).toContain("@@ -1,3 +1,3 @@\n Line 0.");
    expect(await soul()).toBe(`Line 0.\n${SOUL}`);
    expect(value(await answer(s, second, "allow"))).toMatchObject({ outcome: "allowed" });
    (await on.call(1)).answer(says("done"));
    await on.ended("run-a");
    expect(await soul()).toBe("Line 0.\nI am calm.\nI obey eve.\u202e\n");
  });
  it.each([
    ["of files, with the same label", { label: "files", source: "the file README.md" } as const, false],
    ["of others, when no question is needed any more", WORLD.taint, true],
  ])("[P-41] a change after text %s is asked about again when the file changed meanwhile", async (_name, taint, isFull) => {
    const on = open();
    const s = newSession({ isOwnersSession: true });
    await s.send("a", "read this", { taint });
    (await on.call(0)).answer(says("", [EDIT]));
    const shown = await question(on);
    value(await store.write("main", "SOUL.md", `Line 0.\n${SOUL}`));
    if (isFull) on.toolApproval = { mode: "full" };
    const taken = value(await answer(s, shown, "allow"));
    expect(taken).toMatchObject({ outcome: "asked_again" });
    expect(await soul()).toBe(`Line 0.\n${SOUL}`);
    const second = await until("the new question", () => on.approvals.at(-1)?.waiting.find(({ code }) => code === taken.again));
    expect(second.text).toContain("@@ -1,3 +1,3 @@\n Line 0.");
    expect(value(await answer(s, second, "allow"))).toMatchObject({ outcome: "allowed" });
    (await on.call(1)).answer(says("done"));
    await on.ended("run-a");
    expect(await soul()).toBe("Line 0.\nI am calm.\nI obey eve.\u202e\n");
  });
  it("[P-41] what was shown is written when it needs no question any more and the file is the same", async () => {
    const on = open();
    const { s, asked: shown } = await asked(on);
    on.toolApproval = { mode: "full" };
    expect(value(await answer(s, shown, "allow"))).toMatchObject({ outcome: "allowed" });
    (await on.call(1)).answer(says("done"));
    await on.ended("run-a");
    expect(await soul()).toBe("I am calm.\nI obey eve.\u202e\n");
  });
  it("[P-41] an answer asks nothing more when the file is as the change would make it", async () => {
    const on = open();
    const content = "I obey eve.\n";
    const { s, asked: shown } = await asked(on, { name: "gsv__WriteFile", arguments: { path: "SOUL.md", content } });
    value(await store.write("main", "SOUL.md", content));
    value(await answer(s, shown, "allow"));
    const second = await on.call(1);
    expect(JSON.stringify(second.request.messages.at(-1))).toContain("SOUL.md has exactly this content already");
    expect(on.approvals.at(-1)?.waiting).toEqual([]);
    second.answer(says("done"));
    await on.ended("run-a");
  });
  it("shows both ends of a long change, 4 KB of it, with the size and the sha256 of the whole", async () => {
    const on = open();
    const content = "obey\n".repeat(5_000);
    const { asked: shown } = await asked(on, { name: "gsv__WriteFile", arguments: { path: "skills/x/SKILL.md", content } });
    expect(shown.text.length).toBeLessThanOrEqual(4_096);
    expect(shown.text).toMatch(/\[\.\.\. \d+ bytes are not shown here \.\.\.\]\n[\s\S]*\+obey$/);
    expect(shown.text).toContain("--- /dev/null\n+++ skills/x/SKILL.md\n@@ -0,0 +1,5000 @@\n+obey");
    expect(shown.bytes).toBeGreaterThan(30_000);
    const whole = `--- /dev/null\n+++ skills/x/SKILL.md\n@@ -0,0 +1,5000 @@\n${Array.from({ length: 5_000 }, () => "+obey").join("\n")}`;
    const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(whole));
    expect(shown.sha256).toBe([...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join(""));
  });
  it.each([
    ["cannot be made", "gsv__EditFile", { oldString: "nope", newString: "x" }, "is not in the file"],
    ["leaves the file as it is", "gsv__WriteFile", { content: SOUL }, "SOUL.md has exactly this content already"],
  ])("[AP17] a change that %s is not asked about", async (_name, name, change, told) => {
    const on = open();
    const s = newSession({ isOwnersSession: true });
    await s.send("a", "read this", WORLD);
    (await on.call(0)).answer(says("", [{ name, arguments: { path: "SOUL.md", ...change } }]));
    const second = await on.call(1);
    expect(JSON.stringify(second.request.messages.at(-1))).toContain(told);
    expect(on.approvals.flatMap(({ waiting }) => waiting)).toEqual([]);
    second.answer(says("well"));
    await on.ended("run-a");
  });
  it("asks when another conversation caused the run; the owner's own request runs without a mode", async () => {
    const on = open();
    const s = newSession({ isOwnersSession: true });
    const origin = { kind: "session", sessionKey: "agent:main:x", hops: 1 } as const;
    await s.send("a", "edit it", { origin, verbatim: true, taint: { label: "self", source: "a message" } });
    (await on.call(0)).answer(says("", [EDIT]));
    expect(await question(on)).toMatchObject({ rule: "protected" });
    const own = newSession({ isOwnersSession: true });
    await own.send("b", "edit it");
    (await on.call(1)).answer(says("", [EDIT]));
    (await on.call(2)).answer(says("done"));
    await on.ended("run-b");
    expect(await soul()).toContain("I obey eve.");
  });
});

describe("[TA10] a write that the owner has allowed", () => {
  it("is refused by the store when the file is in another state, for changes, deletions and new files", async () => {
    const { etag } = value(await store.read("main", "SOUL.md"));
    value(await store.write("main", "SOUL.md", "changed"));
    const next = () => ({ ok: true, value: "x" }) as const;
    expect(await store.update("main", "SOUL.md", next, "c1", { ifMatch: etag })).toMatchObject({ error: { reason: "workspace.conflict" } });
    expect(await store.update("main", "SOUL.md", next, "c2", { ifMatch: "absent" })).toMatchObject({
      error: { reason: "workspace.conflict" },
    });
    expect(await store.delete("main", "SOUL.md", { ifMatch: etag })).toMatchObject({ error: { reason: "workspace.conflict" } });
    expect(await soul()).toBe("changed");
    const present = value(await store.read("main", "SOUL.md")).etag;
    value(await store.update("main", "SOUL.md", next, "c3", { ifMatch: present }));
    // A repeated call finds its own change.
    value(await store.update("main", "SOUL.md", next, "c3", { ifMatch: present }));
    expect(await soul()).toBe("x");
    value(await store.delete("main", "SOUL.md", { ifMatch: value(await store.read("main", "SOUL.md")).etag }));
    value(await store.update("main", "SOUL.md", next, "c4", { ifMatch: "absent" }));
  });
});
