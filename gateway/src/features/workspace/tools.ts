/** The agent's own files, as tools. Changes are conditional on what was read and remember their call (promises P8). */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { Result } from "../../ports/result.ts";
import { MAX_RESULT_BYTES } from "../../storage/results.ts";
import { mayList, mayRead, writeRefusal } from "./access.ts";
import { flag, integer, optional, text } from "../../tools/arguments.ts";
import { edit, readPart } from "./text-edit.ts";
import { denied, MAX_PATH_CHARS, type Outcome, outcome, type Tool, tool } from "../../tools/tool.ts";

const path = text(MAX_PATH_CHARS);
const content = text(LIMITS.workspaceFileBytes);
const PATH = { type: "string", description: "Path in your workspace, such as `MEMORY.md` or `memory/2026-01-31.md`." } as const;
const notReadable = (): Outcome =>
  denied("This file is your human's own, and this conversation is not. Only the owner's conversation may read it.");

export const WORKSPACE_TOOLS: readonly Tool[] = [
  tool(
    "gsv__ReadFile",
    "Reads a text file of your own workspace (not of a machine). Long files come in parts: go on at the line that the answer names.",
    {
      path: PATH,
      offset: { type: "integer", description: "First line, from 1." },
      limit: { type: "integer", description: "How many lines at most." },
      column: { type: "integer", description: "Where to begin inside the first line, in characters from 0. For very long lines." },
    },
    ["path"],
    { path, offset: optional(integer(1, 1e9)), limit: optional(integer(1, 1e6)), column: optional(integer(0, 1e9)) },
    async ({ path, offset, limit, column }, context, files) => {
      const { identity } = context;
      if (!mayRead(identity, path)) return notReadable();
      const lines = { offset: offset ?? 1, limit, column: column ?? 0 };
      const approved = await files.skill(path, context);
      if (approved)
        return outcome(approved, (content) => {
          const part = readPart(content, lines);
          const texts = part.note === undefined ? [part.text] : [part.text, part.note];
          return { path, totalLines: part.totalLines, content: texts.map((text) => ({ type: "text", text })) };
        });
      const file = await files.read(identity.agentId, path, MAX_RESULT_BYTES);
      return outcome(file, ({ path, content, size, etag, lastModified }) => {
        const part = readPart(content, lines);
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
    // There it reads what is in every prompt, skills, and the results of that conversation's own calls (access.ts).
    { forGuests: true },
  ),
  tool(
    "gsv__WriteFile",
    "Writes a text file of your own workspace: makes it, or replaces all of it. With `append`, adds to its end instead, which is the right way to add to memory files.",
    { path: PATH, content: { type: "string" }, append: { type: "boolean" } },
    ["path", "content"],
    { path, content, append: optional(flag) },
    async ({ path, content, append }, context, files) => {
      const { identity, callId } = context;
      const refused = writeRefusal(identity, path);
      if (refused) return { ok: false, error: refused };
      const add = (current: string | undefined): string =>
        current === undefined || current === "" || current.endsWith("\n") ? `${current ?? ""}${content}` : `${current}\n${content}`;
      const next = (current: string | undefined): Result<string> => ({ ok: true, value: append === true ? add(current) : content });
      return outcome(await files.change(path, context, (options) => files.update(identity.agentId, path, next, callId, options)));
    },
  ),
  tool(
    "gsv__EditFile",
    "Replaces exact text in a file of your own workspace. `oldString` must be in the file exactly once, or set `replaceAll`.",
    { path: PATH, oldString: { type: "string" }, newString: { type: "string" }, replaceAll: { type: "boolean" } },
    ["path", "oldString", "newString"],
    { path, oldString: content, newString: content, replaceAll: optional(flag) },
    async ({ path, oldString, newString, replaceAll }, context, files) => {
      const { identity, callId } = context;
      const refused = writeRefusal(identity, path);
      if (refused) return { ok: false, error: refused };
      let count = 0;
      const next = (current: string | undefined): Result<string> => {
        if (current === undefined)
          return { ok: false, error: { reason: "path.not_found", message: `There is no file \`${path}\` in the workspace.` } };
        const edited = edit(current, oldString, newString, replaceAll === true);
        if (!edited.ok) return edited;
        count = edited.value.count;
        return { ok: true, value: edited.value.text };
      };
      const done = await files.change(path, context, (options) => files.update(identity.agentId, path, next, callId, options));
      return outcome(done, (written) => ({ ...written, ...(count === 0 ? {} : { replaced: count }) }));
    },
  ),
  tool("gsv__DeleteFile", "Deletes a file of your own workspace.", { path: PATH }, ["path"], { path }, async ({ path }, context, files) => {
    const { identity } = context;
    const refused = writeRefusal(identity, path);
    if (refused) return { ok: false, error: refused };
    const gone = await files.change(path, context, (options) => files.delete(identity.agentId, path, options));
    // A call that runs again finds nothing, and what was asked for holds all the same.
    if (!gone.ok && gone.error.reason === "path.not_found")
      return { ok: true, result: { path, deleted: false, note: "There is no such file." } };
    return outcome(gone);
  }),
  tool(
    "gsv__ListFiles",
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
    { forGuests: true },
  ),
];
