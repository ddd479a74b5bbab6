/**
 * The storage layout, row by row, as cases that run inside a Worker: each path, each metadata key, each MIME type, each row of
 * the prompt's order, each rule of a file's lifecycle. Run on the runtime's simulation of R2 (`test/storage/layout.test.ts`) and
 * on the embedded bucket (`embedded/r2.workerd.test.ts`). A case has an agent of its own.
 */
import { LIMITS } from "../../../protocol/gen/limits.ts";
import { asAgentId } from "../../../protocol/gen/types.ts";
import type { Message } from "../../src/ports/messages.ts";
import type { PromptInput } from "../../src/ports/prompt.ts";
import type { SkillPin } from "../../src/ports/skills.ts";
import { createArchiveReader } from "../../src/storage/archive-reader.ts";
import { createArchives } from "../../src/storage/archives.ts";
import { dailyPath, extensionFor, mediaKey } from "../../src/storage/keys.ts";
import { deleteMedia, putMedia } from "../../src/storage/media-objects.ts";
import { composePromptSource } from "../../src/app/prompt-source.ts";
import { createResultFiles } from "../../src/storage/results.ts";
import { createWorkspaceStore } from "../../src/storage/workspace/store.ts";

export interface LayoutCase {
  readonly name: string;
  readonly run: (bucket: R2Bucket, agent: string) => Promise<void>;
}
export const layoutCases: LayoutCase[] = [];
const layoutCase = (name: string, run: LayoutCase["run"]): void => {
  layoutCases.push({ name: `[P5.1] ${name}`, run });
};

function same(actual: unknown, expected: unknown, what: string): void {
  const [a, e] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (a !== e) throw new Error(`${what}: expected ${e}, got ${a}`);
}
function value<T>(result: { ok: true; value: T } | { ok: false; error: { reason: string; message: string } }, what: string): T {
  if (!result.ok) throw new Error(`${what}: ${result.error.reason}: ${result.error.message}`);
  return result.value;
}
const textOf = async (bucket: R2Bucket, key: string): Promise<string | undefined> => (await bucket.get(key))?.text();
const keysUnder = async (bucket: R2Bucket, prefix: string): Promise<string[]> =>
  (await bucket.list({ prefix })).objects.map(({ key }) => key.slice(prefix.length));

// ---------------------------------------------------------------- workspace files and the prompt's order

const NOON = Date.UTC(2026, 1, 19, 12);
const input = (agentId: string, isOwnersSession = true, userTimezone = "UTC"): PromptInput => ({
  identity: { key: `agent:${agentId}:main`, ref: "r", agentId, isOwnersSession },
  config: {
    model: { provider: "demo", id: "demo" },
    timeouts: { llmMs: 1, toolMs: 1 },
    limits: { stepsPerRun: 1, runMs: 1, runCostUsd: 1 },
    session: { mainKey: "main" },
    userTimezone,
  },
  agent: { id: asAgentId(agentId) },
  nodes: [],
  tools: [],
  model: { provider: "demo", id: "demo" },
  systemPromptOverride: undefined,
  now: NOON,
});
/** A new bucket object, so that no other case's cache is used. */
const fresh = (bucket: R2Bucket): R2Bucket =>
  ({
    get: bucket.get.bind(bucket),
    put: bucket.put.bind(bucket),
    head: bucket.head.bind(bucket),
    delete: bucket.delete.bind(bucket),
    list: bucket.list.bind(bucket),
  }) as R2Bucket;
/** Accepts every skill. */
const approving = { skillsSeen: async (_agentId: string, seen: readonly SkillPin[]) => [...seen] };
async function prompt(bucket: R2Bucket, agent: string, isOwnersSession = true, userTimezone = "UTC") {
  return value(await composePromptSource(fresh(bucket), approving).assemble(input(agent, isOwnersSession, userTimezone)), "the prompt");
}
const sectionsOf = async (bucket: R2Bucket, agent: string, isOwnersSession = true): Promise<string[]> =>
  (await prompt(bucket, agent, isOwnersSession)).sections.map(({ id }) => id);

/** File, section, heading, and whether a guest's session sees it. */
const FILES = [
  ["SOUL.md", "soul", "Your Soul", true],
  ["IDENTITY.md", "identity", "Your Identity", true],
  ["USER.md", "user", "About Your Human", false],
  ["AGENTS.md", "agents", "Operating Instructions", true],
  ["MEMORY.md", "memory", "Long-Term Memory", false],
  ["memory/2026-02-18.md", "yesterday", "Recent Context", false],
  ["memory/2026-02-19.md", "today", "Recent Context", false],
  ["TOOLS.md", "tools", "Tool Notes", false],
  ["HEARTBEAT.md", "heartbeat", "Heartbeats", false],
] as const;

for (const [file, section, heading, shared] of FILES) {
  layoutCase(`agents/{agentId}/${file}: its path, its section "${heading}", absent: skipped`, async (bucket, agent) => {
    const store = createWorkspaceStore(fresh(bucket));
    // An agent with history gets no default files.
    await bucket.put(`agents/${agent}/sessions/1.jsonl.gz`, "x");
    same((await sectionsOf(bucket, agent)).includes(section), false, "absent");
    value(await store.write(agent, file, `CANARY of ${file}`), "write");
    const object = await bucket.head(`agents/${agent}/${file}`);
    same(object?.httpMetadata?.contentType, "text/markdown; charset=utf-8", "contentType");
    same(await textOf(bucket, `agents/${agent}/${file}`), `CANARY of ${file}`, "content");
    const own = await prompt(bucket, agent);
    const shown = own.sections.find(({ id }) => id === section);
    same([shown?.text.includes(`CANARY of ${file}`), own.system.includes(heading)], [true, true], "in the prompt");
    same((await sectionsOf(bucket, agent, false)).includes(section), shared, "in a conversation that is not the owner's");
    value(await store.delete(agent, file), "delete");
    same((await sectionsOf(bucket, agent)).includes(section), false, "deleted");
  });
}
layoutCase("loading order: the twelve rows", async (bucket, agent) => {
  for (const [file] of [...FILES].reverse()) await bucket.put(`agents/${agent}/${file}`, `text of ${file}`);
  await bucket.put(`agents/${agent}/skills/mail/SKILL.md`, "---\nname: mail\ndescription: Reads mail.\nalways: true\n---\nRead it.\n");
  same(await sectionsOf(bucket, agent), ["base", ...FILES.map(([, section]) => section), "skills", "runtime"], "order");
});
layoutCase("loading order: BOOTSTRAP.md takes priority, until it is deleted", async (bucket, agent) => {
  for (const [file] of FILES) await bucket.put(`agents/${agent}/${file}`, `text of ${file}`);
  await bucket.put(`agents/${agent}/BOOTSTRAP.md`, "Who are you?");
  same(await sectionsOf(bucket, agent), ["base", "bootstrap", "soul", "identity", "user", "runtime"], "bootstrap order");
  value(await createWorkspaceStore(bucket).delete(agent, "BOOTSTRAP.md"), "the end of commissioning");
  same((await sectionsOf(bucket, agent)).slice(0, 5), ["base", "soul", "identity", "user", "agents"], "normal order");
});
layoutCase("HEARTBEAT.md without meaningful content is skipped", async (bucket, agent) => {
  for (const text of ["  \n", "# Heading\n## Another\n", "<!-- later -->", "---\n***\n"]) {
    await bucket.put(`agents/${agent}/HEARTBEAT.md`, text);
    await bucket.put(`agents/${agent}/SOUL.md`, "soul");
    same((await sectionsOf(bucket, agent)).includes("heartbeat"), false, JSON.stringify(text));
  }
});
layoutCase("agents/{agentId}/memory/{YYYY-MM-DD}.md: today and yesterday in the user's time zone", async (bucket, agent) => {
  for (const day of ["2026-02-18", "2026-02-19", "2026-02-20"]) await bucket.put(`agents/${agent}/${dailyPath(day)}`, `DAY ${day}`);
  const system = (await prompt(bucket, agent, true, "Pacific/Kiritimati")).system;
  same(
    ["2026-02-18", "2026-02-19", "2026-02-20"].map((day) => system.includes(`DAY ${day}`)),
    [false, true, true],
    "days",
  );
});
layoutCase("agents/{agentId}/memory/{YYYY-MM-DD}.md accumulates: appends are never lost", async (bucket, agent) => {
  const store = createWorkspaceStore(bucket);
  const path = dailyPath("2026-02-19");
  const add = (text: string) =>
    store.update(
      agent,
      path,
      (current) => ({ ok: true, value: `${current ?? ""}### Extracted from context compaction (${text})\n` }),
      text,
    );
  for (const text of ["10:00", "11:00", "11:00"]) value(await add(text), text);
  same(
    await textOf(bucket, `agents/${agent}/memory/2026-02-19.md`),
    "### Extracted from context compaction (10:00)\n### Extracted from context compaction (11:00)\n",
    "file",
  );
});

// ---------------------------------------------------------------- skills

const SKILL = (text: string): string => `---\nname: mail\ndescription: ${text}\nalways: true\n---\nBody of ${text}.\n`;
layoutCase(
  "skills/{skillName}/SKILL.md is used when there is no agents/{agentId}/skills/{skillName}/SKILL.md, which takes precedence",
  async (bucket, agent) => {
    const [global, own] = [`skills/${agent}/SKILL.md`, `agents/${agent}/skills/${agent}/SKILL.md`];
    const store = createWorkspaceStore(bucket);
    const named = (text: string): string => SKILL(text).replace("name: mail", `name: ${agent}`);
    await bucket.put(`agents/${agent}/SOUL.md`, "soul");
    await bucket.put(global, named("everyone's"));
    const read = async (): Promise<string> => value(await store.read(agent, `skills/${agent}/SKILL.md`), "read").content;
    same([(await prompt(bucket, agent)).system.includes("everyone's"), await read()], [true, named("everyone's")], "global");
    value(await store.write(agent, `skills/${agent}/SKILL.md`, named("its own")), "write");
    same(
      [await textOf(bucket, global), await textOf(bucket, own)],
      [named("everyone's"), named("its own")],
      "writes go to the agent's own",
    );
    const { system } = await prompt(bucket, agent);
    same([system.includes("its own"), system.includes("everyone's"), await read()], [true, false, named("its own")], "own");
  },
);

// ---------------------------------------------------------------- session archives

const MESSAGES: readonly Message[] = [
  { role: "user", content: "Hello", timestamp: 1_708_300_000_000 },
  {
    role: "toolResult",
    toolCallId: "call_abc",
    toolName: "Bash",
    content: [{ type: "text", text: "output – zwölf 🌍" }],
    isError: false,
    timestamp: 1_708_300_002_000,
  },
];
const archived = (agent: string, part?: number) => ({
  agentId: agent,
  sessionKey: `agent:${agent}:main`,
  sessionId: "0b0e7c1e-0000-4000-8000-000000000000",
  archivedAt: 1_708_300_005_000,
  messages: MESSAGES,
  tokens: { input: 10, output: 20, total: 30 },
  ...(part === undefined ? {} : { part }),
});
for (const [path, part, metadata] of [
  [
    "{sessionId}.jsonl.gz",
    undefined,
    { messageCount: "2", archivedAt: "1708300005000", inputTokens: "10", outputTokens: "20", totalTokens: "30" },
  ],
  [
    "{sessionId}-part{timestamp}.jsonl.gz",
    1_708_300_004_000,
    { partNumber: "1708300004000", messageCount: "2", archivedAt: "1708300005000" },
  ],
] as const) {
  layoutCase(`agents/{agentId}/sessions/${path}: gzip JSONL, its custom metadata, read again`, async (bucket, agent) => {
    const { sessionId, sessionKey } = archived(agent);
    const receipt = value(await createArchives(bucket).put(archived(agent, part)), "put");
    const name = path.replace("{sessionId}", sessionId).replace("{timestamp}", String(part));
    same(receipt.key, `agents/${agent}/sessions/${name}`, "key");
    const object = await bucket.get(receipt.key);
    if (!object) throw new Error("the archive is not there");
    const { sha256, ...custom } = object.customMetadata ?? {};
    const sorted = (record: object): unknown => Object.entries(record).sort();
    same(sorted(custom), sorted({ sessionKey, sessionId, agentId: agent, ...metadata }), "custom metadata");
    same(sha256, receipt.sha256, "sha256");
    const text = await new Response(object.body.pipeThrough(new DecompressionStream("gzip"))).text();
    same(text, MESSAGES.map((message) => `${JSON.stringify(message)}\n`).join(""), "JSONL");
    const page = value(
      await createArchiveReader(bucket).page(agent, name === `${sessionId}.jsonl.gz` ? sessionId : receipt.key, {}),
      "read",
    );
    same([page.messages, page.total, page.archive.kind], [MESSAGES, 2, part === undefined ? "reset" : "part"], "read again");
  });
}
layoutCase("archives: one for each reset, one for each compaction, nothing else of the agent touched", async (bucket, agent) => {
  await bucket.put(`agents/${agent}/MEMORY.md`, "memory");
  const archives = createArchives(bucket);
  for (const part of [undefined, undefined, 5, 5, 6]) value(await archives.put(archived(agent, part)), "put");
  same((await keysUnder(bucket, `agents/${agent}/sessions/`)).length, 3, "archives");
  same(await keysUnder(bucket, `agents/${agent}/M`), ["EMORY.md"], "files");
});
layoutCase("agents/{agentId}/results/{callId}.txt: the full text of a long result", async (bucket, agent) => {
  value(await createResultFiles(bucket).put(agent, "results/ref-r1-0-0.txt", "long"), "put");
  same(await textOf(bucket, `agents/${agent}/results/ref-r1-0-0.txt`), "long", "content");
});

// ---------------------------------------------------------------- media

const UUID = "0b0e7c1e-0000-4000-8000-000000000000";
const MIME_ROWS =
  "image/jpeg jpg image/png png image/gif gif image/webp webp image/svg+xml svg audio/ogg ogg audio/opus opus audio/mpeg mp3 audio/mp3 mp3 audio/mp4 m4a audio/m4a m4a audio/wav wav audio/webm webm audio/flac flac video/mp4 mp4 video/webm webm video/quicktime mov application/pdf pdf application/msword doc application/vnd.openxmlformats-officedocument.wordprocessingml.document docx application/x-other bin".split(
    " ",
  );
for (let row = 0; row < MIME_ROWS.length; row += 2) {
  const [mimeType = "", extension = ""] = [MIME_ROWS[row], MIME_ROWS[row + 1]];
  layoutCase(`media/{sessionKey}/{uuid}.{ext}: ${mimeType} is ${extension}, stored raw with its contentType`, async (bucket, agent) => {
    const sessionKey = `agent:${agent}:main`;
    const bytes = new Uint8Array([0, 1, 2, 0xff]);
    const put = value(await putMedia(bucket, { sessionKey, uuid: UUID, mimeType, bytes, uploadedAt: 1_708_300_000_000 }), "put");
    same([put.key, extensionFor(mimeType)], [`media/${sessionKey}/${UUID}.${extension}`, extension], "key");
    same(mediaKey(sessionKey, UUID, mimeType), put.key, "keys.ts");
    const object = await bucket.get(put.key);
    same([object?.httpMetadata?.contentType, object?.size], [mimeType, 4], "HTTP metadata");
    same([...new Uint8Array((await object?.arrayBuffer()) ?? new ArrayBuffer(0))], [...bytes], "bytes");
  });
}
layoutCase("media: custom metadata originalFilename, uploadedAt, sessionKey", async (bucket, agent) => {
  const sessionKey = `agent:${agent}:discord:group:42`;
  const of = async (filename: string | undefined) => {
    const bytes = new Uint8Array([1]);
    const given = {
      sessionKey,
      uuid: UUID,
      mimeType: "image/png",
      bytes,
      uploadedAt: 1_708_300_000_000,
      ...(filename === undefined ? {} : { filename }),
    };
    const { customMetadata = {} } = (await bucket.head(value(await putMedia(bucket, given), "put").key)) ?? {};
    const { originalFilename, uploadedAt, sessionKey: key, ...rest } = customMetadata;
    return [originalFilename, uploadedAt, key, Object.keys(rest).filter((name) => name !== "sha256")];
  };
  same(await of("Katze – ü.png"), ["Katze – ü.png", "1708300000000", sessionKey, []], "named");
  same(await of(undefined), ["", "1708300000000", sessionKey, []], "may be empty");
});
layoutCase("media: at most 25 MB", async (bucket, agent) => {
  const bytes = new Uint8Array(LIMITS.mediaBytes + 1);
  const put = await putMedia(bucket, { sessionKey: `agent:${agent}:main`, uuid: UUID, mimeType: "video/mp4", bytes, uploadedAt: 1 });
  same([LIMITS.mediaBytes, put.ok ? "ok" : put.error.reason], [25 * 1024 * 1024, "file.too_large"], "cap");
  same(await keysUnder(bucket, `media/agent:${agent}:main/`), [], "nothing is stored");
});
layoutCase("media: a reset deletes everything under media/{sessionKey}/, and nothing of another session", async (bucket, agent) => {
  const [mine, other] = [`agent:${agent}:main`, `agent:${agent}:main2`];
  for (const sessionKey of [mine, other])
    for (const digit of "123") {
      const uuid = UUID.replace(/0$/, digit);
      value(await putMedia(bucket, { sessionKey, uuid, mimeType: "image/png", bytes: new Uint8Array([1]), uploadedAt: 1 }), "put");
    }
  same(value(await deleteMedia(bucket, mine), "delete"), 3, "deleted");
  same([(await keysUnder(bucket, `media/${mine}/`)).length, (await keysUnder(bucket, `media/${other}/`)).length], [0, 3], "left");
  same(value(await deleteMedia(bucket, mine), "delete"), 0, "again");
});

// ---------------------------------------------------------------- versions

layoutCase(
  "versions/{agentId}/{path}/@{uploaded}-{etag}: what a file was, with who wrote it, restored byte for byte",
  async (bucket, agent) => {
    const store = createWorkspaceStore(bucket);
    value(await store.write(agent, "notes/Ü 🌍.md", "one", { by: "client:laptop" }), "write");
    const before = await bucket.head(`agents/${agent}/notes/Ü 🌍.md`);
    value(await store.write(agent, "notes/Ü 🌍.md", "two"), "write");
    same(await keysUnder(bucket, `versions/${agent}/`), [`notes/Ü 🌍.md/@${before?.uploaded.getTime()}-${before?.etag}`], "key");
    const [version] = value(await store.log(agent, "notes/Ü 🌍.md"), "log").versions;
    same([version?.by, version?.at, version?.sizeBytes], ["client:laptop", before?.uploaded.getTime(), 3], "version");
    value(await store.delete(agent, "notes/Ü 🌍.md"), "delete");
    value(await store.restore(agent, "notes/Ü 🌍.md", version?.version ?? "", { ifMatch: "absent" }), "restore");
    same(await textOf(bucket, `agents/${agent}/notes/Ü 🌍.md`), "one", "restored");
    same(value(await store.log(agent, "notes/Ü 🌍.md"), "log").versions.length, 2, "versions");
  },
);
layoutCase("versions: a large file is kept by streaming", async (bucket, agent) => {
  const large = new Uint8Array(3 << 20).map((_, index) => index % 251);
  await bucket.put(`agents/${agent}/big.bin`, large);
  const store = createWorkspaceStore(bucket);
  value(await store.write(agent, "big.bin", "small"), "write");
  const [key] = await keysUnder(bucket, `versions/${agent}/`);
  const kept = await bucket.get(`versions/${agent}/${key}`);
  same([kept?.size, kept?.etag], [large.length, key?.split("-").at(-1)], "kept whole");
  await kept?.body.cancel();
});
