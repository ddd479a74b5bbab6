/** Undo (rules UN3 to UN6): finds the calls of a run, a call or an undo, and undoes them place by place: machines, and agents' files. */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import {
  asAgentId,
  asCallId,
  asNodeId,
  asSessionKey,
  asToolName,
  type UndoFile,
  type UndoOutcome,
  type UndoPlace,
  type UndoResult,
} from "../../../../protocol/gen/types.ts";
import { utf8Bytes } from "../../../../protocol/runtime/utf8.ts";
import { policyClassOf } from "../../../../protocol/gen/lookups.ts";
import { actorOf, scopesOf } from "../../kernel/authorise.ts";
import type { Caller, FeatureDefinition } from "../../kernel/feature.ts";
import { namedSession } from "../../kernel/naming.ts";
import { fail } from "../../kernel/outcome.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import type { ChangesPort, ChangingCall } from "../../ports/changes.ts";
import type { NodesPort, NodeUndoPort } from "../../ports/nodes.ts";
import { type Failure, type Result, sentence, succeed } from "../../ports/result.ts";
import type { SessionsPort } from "../../ports/sessions.ts";
import type { SkillApprovals } from "../../ports/skill-approvals.ts";
import type { Bucket } from "../../storage/bucket.ts";
import { createWorkspaceStore } from "../../storage/workspace/store.ts";
import { type Asked, undoFiles } from "./workspace-files.ts";

export interface UndoPorts
  extends ChangesPort,
    NodesPort,
    NodeUndoPort,
    SkillApprovals,
    Pick<SessionsPort, "sessions">,
    Pick<KernelPorts, "audit" | "config" | "ids" | "now"> {
  readonly bucket: Bucket;
}

/** What a node that keeps copies reports. */
const CAPABILITY = "filesystem.undo";
const MAIN_SESSION = "main";
const MAX_COMMANDS = 1000;
/** A name from outside, as a message repeats it. */
const shown = (name: string): string => JSON.stringify(name.slice(0, 120));
/** Parts of one machine's undo. */
const MAX_PARTS = 1000;
type Params = { readonly target?: string | undefined; readonly sessionKey?: string | undefined; readonly force?: boolean | undefined };
interface Found {
  readonly kind: UndoResult["kind"];
  readonly target: string;
  /** The same for nodes: a call's id, or the beginning of a run's. */
  readonly scope: string;
  readonly calls: readonly ChangingCall[];
}

export const undoFeature: FeatureDefinition<UndoPorts, object> = {
  name: "undo",
  create(ports) {
    const { changes, config, now, sessions } = ports;
    const store = createWorkspaceStore(ports.bucket);

    function find({ target, sessionKey }: Params, skip: number): Result<Found> {
      const named =
        sessionKey === undefined && target !== undefined
          ? undefined
          : namedSession(config, sessionKey ?? `agent:${config.defaultAgentId()}:${MAIN_SESSION}`);
      if (named?.ok === false) return named;
      const key = named?.value.key;
      const calls = target === undefined ? changes.lastRun(key ?? "", skip) : changes.calls(target, key);
      const [first] = calls;
      if (first === undefined) return target === undefined ? nothingOf(key ?? "", sessionKey ?? "") : nothingCalled(target, key);
      const isOne = target?.includes("/") === true && first.callId === target;
      if (isOne) return succeed({ kind: target.startsWith("undo/") ? "undo" : "call", target, scope: target, calls });
      return succeed({
        kind: "run",
        target: first.runId ?? target ?? "",
        scope: `${first.callId.split("/").slice(0, 2).join("/")}/`,
        calls,
      });
    }

    function nothingOf(key: string, asked: string): Failure {
      // The main conversation begins with its first message.
      if (sessions.find(key) === undefined && key !== mainSession()) {
        const meant = sessions.keyEndingWith(asked.trim());
        const hint = meant === undefined ? "List the conversations: `gsv session list`." : `Did you mean \`gsv undo --session ${meant}\`?`;
        return fail("session.not_found", `There is no conversation ${key}, so nothing was undone.`, hint);
      }
      return fail(
        "undo.nothing",
        `In the last 7 days, no run of ${key} changed a file with a file tool, or all of them are undone. What commands changed is not kept.`,
      );
    }
    function nothingCalled(target: string, key: string | undefined): Failure {
      const elsewhere = key === undefined ? undefined : changes.calls(target, undefined)[0]?.sessionKey;
      if (elsewhere !== undefined)
        return fail(
          "undo.nothing",
          `${shown(target)} belongs to the conversation ${elsewhere}, not to ${key}.`,
          `Run \`gsv undo ${target}\` without a conversation.`,
        );
      const named = namedSession(config, target);
      if (named.ok && sessions.find(named.value.key) !== undefined)
        return fail(
          "undo.nothing",
          `${named.value.key} is a conversation, not a run or a call.`,
          `To undo its last run, run \`gsv undo --session ${named.value.key}\`.`,
        );
      return fail(
        "undo.nothing",
        `Nothing can be undone under the name ${shown(target)}: no run, call or undo of the last 7 days has it, or it changed no file with a file tool.`,
        "`gsv undo` alone offers the last run that changed files. `gsv audit --action tool.call` lists calls.",
      );
    }
    const mainSession = (): string | undefined => {
      const main = namedSession(config, `agent:${config.defaultAgentId()}:${MAIN_SESSION}`);
      return main.ok ? main.value.key : undefined;
    };

    /** A conversation that is made again under the same name has another ref, with which the ids of its calls begin. */
    const isOfDeleted = (call: ChangingCall | undefined): boolean =>
      call?.sessionKey !== undefined && sessions.find(call.sessionKey)?.ref !== call.callId.split("/")[0];

    async function onNode(nodeId: string, { scope, target }: Found, { undoId, dryRun, force }: Asked): Promise<UndoPlace> {
      const files = new Placed();
      const done = (problem?: string): UndoPlace => ({
        nodeId: asNodeId(nodeId),
        ...files.all(),
        ...(problem === undefined ? {} : { problem: problem.slice(0, 8000) }),
      });
      const node = ports.nodes.list().find((known) => known.nodeId === nodeId);
      const again = `Then repeat \`gsv undo ${target}\`.`;
      if (node === undefined) return done("This machine was forgotten: its files can't be undone from here.");
      if (!node.online) return done(`The machine is not connected. Start its node: \`gsv node\`. ${again}`);
      if (!node.hostCapabilities.some((capability) => capability === CAPABILITY))
        return done("The node there keeps no copies. Update gsv on that machine; what was changed before stays.");
      if (!dryRun) changes.called({ callId: undoId, nodeId, tool: "undo", at: now() });
      let beforeSeq: number | undefined;
      for (let part = 0; part < MAX_PARTS; part++) {
        const more = beforeSeq === undefined ? {} : { beforeSeq };
        const answer = await ports.nodeUndo.ask(nodeId, { calls: scope, undoId, dryRun, force, ...more });
        if (!answer.ok) return done(`Not finished: ${sentence(answer.error)} ${again} Files that are done are left alone.`);
        files.add(answer.value.files);
        const { next } = answer.value;
        if (next === undefined) return done();
        // Each part is older than the one before. What a machine says is not trusted to end.
        if (beforeSeq !== undefined && next >= beforeSeq) return done(`Not finished: the machine answered in a wrong order. ${again}`);
        beforeSeq = next;
      }
      return done(`Not finished: there are too many files. ${again}`);
    }

    async function inAgents(found: Found, asked: Asked): Promise<readonly UndoPlace[]> {
      const ids = [...new Set(found.calls.flatMap((call) => (call.nodeId === undefined ? [call.callId] : [])))];
      const recorded = changes.files(ids);
      if (recorded.length === 0) return [];
      if (!asked.dryRun) changes.called({ callId: asked.undoId, tool: "undo", at: now() });
      const places = await undoFiles({ ...ports, store }, recorded, asked);
      return [...places].map(([agentId, files]) => ({ agentId: asAgentId(agentId), ...new Placed().add(files).all() }));
    }

    async function undo(caller: Caller, params: Params, dryRun: boolean): Promise<Result<UndoResult>> {
      for (let skip = 0; ; skip++) {
        const found = find(params, skip);
        if (!found.ok || params.target !== undefined) return found.ok ? undoFound(caller, found.value, params, dryRun) : found;
        // A tool that changes files may have changed none: what it was asked for was refused.
        const planned = await undoFound(caller, found.value, params, true);
        if (planned.ok && planned.value.places.every(isUntouched)) continue;
        return dryRun ? planned : undoFound(caller, found.value, params, false);
      }
    }
    async function undoFound(
      { connection: { principal } }: Caller,
      found: Found,
      params: Params,
      dryRun: boolean,
    ): Promise<Result<UndoResult>> {
      const { kind, target, scope, calls } = found;
      const fresh = `undo/${ports.ids.name(10)}`;
      const asked: Asked = {
        undoId: dryRun ? fresh : changes.begin(scope, fresh),
        by: actorOf(principal),
        isAdmin: scopesOf(principal).includes("admin"),
        dryRun,
        force: params.force === true,
      };
      const machines = [...new Set(calls.flatMap(({ nodeId, tool }) => (nodeId === undefined || isCommand(tool) ? [] : [nodeId])))].sort();
      const [agents, ...nodes] = await Promise.all([inAgents(found, asked), ...machines.map((nodeId) => onNode(nodeId, found, asked))]);
      const places = bounded([...nodes, ...agents]);
      if (!dryRun && places.every(({ problem }) => problem === undefined)) changes.finish(asked.undoId, undoneOf(places));
      const last = calls.at(-1);
      const later =
        params.target === undefined && last?.sessionKey !== undefined
          ? commandsOf(changes.commandsAfter(last.sessionKey, last.callId))
          : [];
      return succeed({
        kind,
        target,
        ...(last?.sessionKey === undefined ? {} : { sessionKey: asSessionKey(last.sessionKey) }),
        ...(isOfDeleted(last) ? { deleted: true as const } : {}),
        ...(last === undefined ? {} : { at: last.at }),
        ...(dryRun ? {} : { undoId: asked.undoId }),
        places,
        commands: commandsOf(calls),
        ...(later.length === 0 ? {} : { laterCommands: later }),
      });
    }

    return {
      offers: {},
      methods: {
        "undo.plan": (caller, params) => undo(caller, params, true),
        "undo.apply": async (caller, params) => {
          const done = await undo(caller, params, false);
          const actor = actorOf(caller.connection.principal);
          const detail = done.ok ? `${done.value.undoId}: ${summary(done.value.places)}` : done.error.reason;
          const target = done.ok ? done.value.target : (params.target ?? "");
          const decision = done.ok ? "allowed" : "failed";
          ports.audit.append({ actor, action: "undo.apply", target, decision, detail });
          return done;
        },
      },
    };
  },
};

const commandsOf = (calls: readonly ChangingCall[]): UndoResult["commands"] =>
  calls
    .flatMap(({ callId, nodeId, tool }) =>
      nodeId !== undefined && isCommand(tool) ? [{ callId: asCallId(callId), nodeId: asNodeId(nodeId), tool: asToolName(tool) }] : [],
    )
    .slice(0, MAX_COMMANDS);
const isUntouched = ({ counts, problem }: UndoPlace): boolean => problem === undefined && Object.keys(counts).length === 0;
/** Its changes are not kept. `undo` is an undo's own name for its part on a machine. */
const isCommand = (tool: string): boolean => tool !== "undo" && policyClassOf(tool) === "exec";

/** The files of a place: all are counted, and no more are kept than an answer can list, of those with a problem and of the others. */
class Placed {
  readonly #counts: Record<string, number> = {};
  readonly #files: UndoFile[] = [];
  #left = { problem: LIMITS.undoAnswerBytes, none: LIMITS.undoAnswerBytes };
  #unlisted = 0;

  add(files: readonly UndoFile[]): this {
    for (const file of files) {
      this.#counts[file.outcome] = (this.#counts[file.outcome] ?? 0) + 1;
      const kind = file.problem === undefined ? "none" : "problem";
      this.#left[kind] -= answerBytes(file);
      if (this.#left[kind] < 0) this.#unlisted++;
      else this.#files.push(file);
    }
    return this;
  }
  all(): Pick<UndoPlace, "files" | "unlisted" | "counts"> {
    return { files: this.#files, unlisted: this.#unlisted, counts: this.#counts };
  }
}
const answerBytes = ({ path, problem = "" }: UndoFile): number => 100 + utf8Bytes(path) + utf8Bytes(problem);
/** Lists as many files as fit an answer, those with a problem first; the rest is counted. */
function bounded(places: readonly UndoPlace[]): UndoPlace[] {
  let left = LIMITS.undoAnswerBytes;
  return places.map((place) => {
    const sorted = [...place.files].sort((a, b) => Number(a.problem === undefined) - Number(b.problem === undefined));
    const listed = new Set<UndoFile>();
    for (const file of sorted) {
      left -= answerBytes(file);
      if (left < 0) break;
      listed.add(file);
    }
    const files = place.files.filter((file) => listed.has(file));
    return { ...place, files, unlisted: place.unlisted + place.files.length - files.length };
  });
}
/** Absent: files were left that a later undo may do, with force or when they can be reached. */
function undoneOf(places: readonly UndoPlace[]): number | undefined {
  const sum = (outcome: UndoOutcome): number => places.reduce((all, { counts }) => all + (counts[outcome] ?? 0), 0);
  return sum("conflict") + sum("failed") === 0 ? sum("undone") : undefined;
}
const summary = (places: readonly UndoPlace[]): string =>
  places
    .map(({ nodeId, agentId, counts, problem }) => {
      const counted = Object.entries(counts).map(([outcome, count]) => `${count} ${outcome}`);
      return `${nodeId ?? `agent ${agentId}`}: ${[...counted, ...(problem === undefined ? [] : ["not finished"])].join(", ")}`;
    })
    .join("; ");
