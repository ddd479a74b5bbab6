/** The file tools for the agent's workspace. A change is conditional on the content that was read, and made once for a call id (promises P8). */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { fileTaint, namesTaint } from "../../policy/taint.ts";
import { failure } from "../../ports/result.ts";
import { MAX_RESULT_BYTES } from "../../storage/results.ts";
import { changeRefusal, mayList, mayRead, writeRefusal } from "./access.ts";
import { flag, integer, optional, text } from "../../tools/arguments.ts";
import { edited, written } from "./changes.ts";
import { type Part, readPart } from "./text-edit.ts";
import { goesToQuarantine, quarantined } from "../../tools/quarantined.ts";
import { denied, MAX_PATH_CHARS, type Outcome, outcome, type Tool, tool } from "../../tools/tool.ts";

const path = text(MAX_PATH_CHARS);
const content = text(LIMITS.workspaceFileBytes);
const PATH = { type: "string", description: "In your workspace: `memory/2026-01-31.md`." } as const;
const notReadable = (): Outcome => denied("This file is private to your human. Only your human's own conversation may read it.");
const blocks = ({ text, note }: Part): readonly object[] =>
  [text, ...(note === undefined ? [] : [note])].map((text) => ({ type: "text", text }));

export const WORKSPACE_TOOLS: readonly Tool[] = [
  tool(
    {
      name: "gsv__ReadFile",
      description: "Reads a text file of your own workspace, or the text of a file of this conversation (`media:3`).",
      policyClass: "read_private",
      // access.ts limits what a guest's session can read.
      guests: "always",
      properties: {
        path: PATH,
        offset: { type: "integer", description: "First line, from 1." },
        limit: { type: "integer", description: "Number of lines." },
        column: { type: "integer", description: "First character of that line, from 0." },
      },
    },
    { path, offset: optional(integer(1, 1e9)), limit: optional(integer(1, 1e6)), column: optional(integer(0, 1e9)) },
    async ({ path, offset, limit, column }, context, files) => {
      const { identity } = context;
      const lines = { offset: offset ?? 1, limit, column: column ?? 0 };
      // Files of the session itself, so everyone in it may read them.
      const received = await files.received(path, context);
      if (received)
        return outcome(received, (content) => {
          const part = readPart(content, lines);
          return { path, totalLines: part.totalLines, content: blocks(part) };
        });
      if (!mayRead(identity, path)) return notReadable();
      const approved = await files.skill(path, context);
      if (approved)
        return outcome(approved, (content) => {
          const part = readPart(content, lines);
          return { path, totalLines: part.totalLines, content: blocks(part) };
        });
      const file = await files.read(identity.agentId, path, MAX_RESULT_BYTES);
      const read = outcome(file, ({ path, content, size, etag, lastModified }) => {
        const part = readPart(content, lines);
        return { path, size, etag, lastModified, totalLines: part.totalLines, content: blocks(part) };
      });
      const heard = file.ok ? fileTaint(path, file.value.taint) : undefined;
      return read.ok && heard !== undefined ? { ...read, taint: heard } : read;
    },
  ),
  tool(
    {
      name: "gsv__WriteFile",
      description: "Writes a text file of your own workspace, or adds to its end with `append`.",
      policyClass: "write_workspace",
      properties: { path: PATH, content: { type: "string" }, append: { type: "boolean" } },
    },
    { path, content, append: optional(flag) },
    async (args, context, files) => {
      const refused = writeRefusal(context.identity, args.path);
      if (refused) return { ok: false, error: refused };
      if (goesToQuarantine(args.path, context)) {
        const { content, append } = args;
        return quarantined(
          context,
          args.path,
          await files.quarantine(args.path, context, append === true ? { kind: "append", text: content } : { kind: "write", content }),
        );
      }
      return outcome(await files.update(args.path, context, written(args), args.append !== true));
    },
    { change: (args) => ({ path: args.path, next: written(args) }), refused: ({ path }, agentId) => changeRefusal(agentId, path, true) },
  ),
  tool(
    {
      name: "gsv__EditFile",
      description: "Replaces exact text in a file of your own workspace. `oldString` must occur once, unless `replaceAll` is set.",
      policyClass: "write_workspace",
      properties: {
        path: PATH,
        oldString: { type: "string" },
        newString: { type: "string" },
        replaceAll: { type: "boolean" },
      },
    },
    { path, oldString: content, newString: content, replaceAll: optional(flag) },
    async ({ path, oldString, newString, replaceAll }, context, files) => {
      const refused = writeRefusal(context.identity, path);
      if (refused) return { ok: false, error: refused };
      if (goesToQuarantine(path, context)) {
        const change = { kind: "edit", oldString, newString, replaceAll: replaceAll === true } as const;
        return quarantined(context, path, await files.quarantine(path, context, change));
      }
      let count = 0;
      const next = edited({ path, oldString, newString, replaceAll }, (replaced) => {
        count = replaced;
      });
      return outcome(await files.update(path, context, next), (written) => ({ ...written, ...(count === 0 ? {} : { replaced: count }) }));
    },
    { change: (args) => ({ path: args.path, next: edited(args) }), refused: ({ path }, agentId) => changeRefusal(agentId, path, true) },
  ),
  tool(
    {
      name: "gsv__DeleteFile",
      description: "Deletes a file of your own workspace.",
      policyClass: "write_workspace",
      properties: { path: PATH },
    },
    { path },
    async ({ path }, context, files) => {
      const refused = writeRefusal(context.identity, path, false);
      if (refused) return { ok: false, error: refused };
      const gone = await files.delete(path, context);
      // A repeated call finds the file deleted, which is the requested state.
      if (!gone.ok && gone.error.reason === "path.not_found")
        return { ok: true, result: { path, deleted: false, note: "There is no such file." } };
      return outcome(gone, ({ path: name, deleted }) => ({ path: name, deleted }));
    },
    {
      change: ({ path }) => ({
        path,
        next: (current) =>
          current === undefined
            ? failure("path.not_found", `There is no file \`${path}\` in the workspace.`)
            : { ok: true, value: undefined },
      }),
      refused: ({ path }, agentId) => changeRefusal(agentId, path, false),
    },
  ),
  tool(
    {
      name: "gsv__ListFiles",
      description: "Lists a folder of your own workspace.",
      policyClass: "read_private",
      // access.ts limits what a guest's session can list.
      guests: "always",
      properties: { path: { type: "string", description: "Default: the workspace itself." } },
    },
    { path: optional(path) },
    async ({ path }, { identity }, files) => {
      if (!mayList(identity, path)) return notReadable();
      const listed = await files.list(identity.agentId, path);
      if (!listed.ok) return listed;
      const { labels, ...listing } = listed.value;
      const result = {
        ...listing,
        files: listing.files.filter((file) => mayRead(identity, file)),
        directories: listing.directories.filter((folder) => mayList(identity, folder)),
      };
      const heard = namesTaint([...result.files, ...result.directories].map((name) => labels.get(name)));
      return { ok: true, result, ...(heard === undefined ? {} : { taint: heard }) };
    },
  ),
];
