/**
 * The tools that are always there, with no machine connected: the agent's own files, and what it may know of the gateway
 * (product P5.4). Safe to run again with the same callId: changes are conditional on what was read and remember their
 * call (promises P8). Never throws, never shows a secret: what a gateway's answer holds was masked there.
 */
import { LIMITS } from "../../../protocol/gen/limits.ts";
import type { ToolDefinition } from "../../../protocol/gen/types.ts";
import type { GsvError, NativeToolContext, NativeTools, Result } from "../ports.ts";
import type { Bucket } from "../workspace/bucket.ts";
import { MAX_RESULT_BYTES } from "../workspace/results.ts";
import { createWorkspaceStore, type WorkspaceStore } from "../workspace/store.ts";
import { mayList, mayRead, writeRefusal } from "./access.ts";
import { type Arguments, flag, integer, optional, readArguments, text } from "./arguments.ts";
import { edit, readPart } from "./text-edit.ts";

type Outcome = { ok: true; result: unknown } | { ok: false; error: GsvError };
interface Tool {
  readonly definition: ToolDefinition;
  readonly run: (args: Arguments, context: NativeToolContext, store: WorkspaceStore) => Promise<Outcome>;
}

const MAX_PATH_CHARS = 1024;
const path = text(MAX_PATH_CHARS);
const content = text(LIMITS.workspaceFileBytes);

const denied = (message: string): Outcome => ({ ok: false, error: { reason: "auth.forbidden", message } });
const notReadable = (): Outcome =>
  denied("This file is your human's own, and this conversation is not. Only the owner's conversation may read it.");
/** Kept with what a run writes, so that its versions say who wrote them. */
const writer = (identity: NativeToolContext["identity"]): { by: string } => ({ by: `agent:${identity.key}` });
const ownersOnly = (): Outcome => denied("Only the owner's own conversation may ask for this.");
const outcome = <T>(result: Result<T>, shape: (value: T) => unknown = (value) => value): Outcome =>
  result.ok ? { ok: true, result: shape(result.value) } : result;

function tool<S extends Parameters<typeof readArguments>[1]>(
  name: string,
  description: string,
  properties: Readonly<Record<string, unknown>>,
  required: readonly string[],
  shape: S,
  run: (
    args: Extract<ReturnType<typeof readArguments<S>>, { ok: true }>["value"],
    context: NativeToolContext,
    store: WorkspaceStore,
  ) => Promise<Outcome>,
): Tool {
  return {
    definition: { name: `gsv__${name}`, description, inputSchema: { type: "object", properties, required }, idempotent: true },
    async run(args, context, store) {
      const read = readArguments(args, shape);
      return read.ok ? run(read.value, context, store) : read;
    },
  };
}
const PATH = { type: "string", description: "Path in your workspace, such as `MEMORY.md` or `memory/2026-01-31.md`." } as const;

const TOOLS: readonly Tool[] = [
  tool(
    "ReadFile",
    "Reads a text file of your own workspace (not of a machine). Long files come in parts: go on at the line that the answer names.",
    {
      path: PATH,
      offset: { type: "integer", description: "First line, from 1." },
      limit: { type: "integer", description: "How many lines at most." },
      column: { type: "integer", description: "Where to begin inside the first line, in characters from 0. For very long lines." },
    },
    ["path"],
    { path, offset: optional(integer(1, 1e9)), limit: optional(integer(1, 1e6)), column: optional(integer(0, 1e9)) },
    async ({ path, offset, limit, column }, { identity }, store) => {
      if (!mayRead(identity, path)) return notReadable();
      const file = await store.read(identity.agentId, path, MAX_RESULT_BYTES);
      return outcome(file, ({ path, content, size, etag, lastModified }) => {
        const part = readPart(content, { offset: offset ?? 1, limit, column: column ?? 0 });
        return {
          path,
          size,
          etag,
          lastModified,
          totalLines: part.totalLines,
          content: [{ type: "text", text: part.text }, ...(part.note === undefined ? [] : [{ type: "text", text: part.note }])],
        };
      });
    },
  ),
  tool(
    "WriteFile",
    "Writes a text file of your own workspace: makes it, or replaces all of it. With `append`, adds to its end instead, which is the right way to add to memory files.",
    { path: PATH, content: { type: "string" }, append: { type: "boolean" } },
    ["path", "content"],
    { path, content, append: optional(flag) },
    async ({ path, content, append }, { identity, callId }, store) => {
      const refused = writeRefusal(identity, path);
      if (refused) return { ok: false, error: refused };
      const add = (current: string | undefined): string =>
        current === undefined || current === "" || current.endsWith("\n") ? `${current ?? ""}${content}` : `${current}\n${content}`;
      return outcome(
        await store.update(
          identity.agentId,
          path,
          (current) => ({ ok: true, value: append === true ? add(current) : content }),
          callId,
          writer(identity),
        ),
      );
    },
  ),
  tool(
    "EditFile",
    "Replaces exact text in a file of your own workspace. `oldString` must be in the file exactly once, or set `replaceAll`.",
    { path: PATH, oldString: { type: "string" }, newString: { type: "string" }, replaceAll: { type: "boolean" } },
    ["path", "oldString", "newString"],
    { path, oldString: content, newString: content, replaceAll: optional(flag) },
    async ({ path, oldString, newString, replaceAll }, { identity, callId }, store) => {
      const refused = writeRefusal(identity, path);
      if (refused) return { ok: false, error: refused };
      let count = 0;
      const done = await store.update(
        identity.agentId,
        path,
        (current) => {
          if (current === undefined)
            return { ok: false, error: { reason: "path.not_found", message: `There is no file \`${path}\` in the workspace.` } };
          const edited = edit(current, oldString, newString, replaceAll === true);
          if (!edited.ok) return edited;
          count = edited.value.count;
          return { ok: true, value: edited.value.text };
        },
        callId,
        writer(identity),
      );
      return outcome(done, (written) => ({ ...written, ...(count === 0 ? {} : { replaced: count }) }));
    },
  ),
  tool("DeleteFile", "Deletes a file of your own workspace.", { path: PATH }, ["path"], { path }, async ({ path }, { identity }, store) => {
    const refused = writeRefusal(identity, path);
    if (refused) return { ok: false, error: refused };
    const gone = await store.delete(identity.agentId, path);
    // A call that runs again finds nothing, and what was asked for holds all the same.
    if (!gone.ok && gone.error.reason === "path.not_found")
      return { ok: true, result: { path, deleted: false, note: "There is no such file." } };
    return outcome(gone);
  }),
  tool(
    "ListFiles",
    "Lists the files and folders directly in a folder of your own workspace.",
    { path: { type: "string", description: "The folder; absent: the workspace itself." } },
    [],
    { path: optional(path) },
    async ({ path }, { identity }, store) => {
      if (!mayList(identity, path)) return notReadable();
      return outcome(await store.list(identity.agentId, path), (listing) => ({
        ...listing,
        files: listing.files.filter((file) => mayRead(identity, file)),
        directories: listing.directories.filter((folder) => mayList(identity, folder)),
      }));
    },
  ),
  tool(
    "ConfigGet",
    "Shows GSV's configuration, or one path of it. Secrets are masked.",
    { path: { type: "string", description: "Such as `model.provider`; absent: all." } },
    [],
    { path: optional(text(512)) },
    async ({ path }, { identity, gateway }) => (identity.isMain ? outcome(await gateway.configGet(path)) : ownersOnly()),
  ),
  tool(
    "SessionsList",
    "Lists conversations, the last active first.",
    { limit: { type: "integer", description: "At most this many; 20 when absent." } },
    [],
    { limit: optional(integer(1, LIMITS.pageItems)) },
    async ({ limit }, { identity, gateway }) =>
      identity.isMain ? { ok: true, result: { sessions: await gateway.sessionsList(limit ?? 20) } } : ownersOnly(),
  ),
  tool(
    "LogsGet",
    "Shows the last lines of a machine's node log. Absent `nodeId`: the only machine that is connected.",
    { nodeId: { type: "string" }, lines: { type: "integer", description: "How many lines; 100 when absent." } },
    [],
    { nodeId: optional(text(64)), lines: optional(integer(1, 5000)) },
    async ({ nodeId, lines }, { identity, gateway }) => (identity.isMain ? outcome(await gateway.nodeLogs(nodeId, lines)) : ownersOnly()),
  ),
];

export function createNativeTools(bucket: Bucket): NativeTools {
  const store = createWorkspaceStore(bucket);
  const byName = new Map(TOOLS.map((entry) => [entry.definition.name, entry]));
  return {
    definitions: TOOLS.map(({ definition }) => definition),
    async run(name, args, context) {
      const found = byName.get(name);
      if (!found) return { ok: false, error: { reason: "tool.unknown", message: `There is no tool \`${name.slice(0, 128)}\`.` } };
      try {
        return await found.run(args, context, store);
      } catch {
        return { ok: false, error: { reason: "internal", message: `The tool \`${name}\` failed inside GSV. The log has the details.` } };
      }
    },
  };
}
