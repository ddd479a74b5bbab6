/** The sessions' registry: which exist, who owns and follows them, and messages to them. A session keeps its content itself. */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { SessionEntry } from "../../../../protocol/gen/types.ts";
import type { FeatureDefinition } from "../../kernel/feature.ts";
import { scopesOf } from "../../kernel/authorise.ts";
import { namedSession } from "../../kernel/naming.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import type { SessionNews } from "../../ports/gateway.ts";
import type { Result } from "../../ports/result.ts";
import type { SearchableSessions, SearchPort } from "../../ports/search.ts";
import type { SessionIdentity, SessionPort } from "../../ports/session.ts";
import type { SessionToSession, SessionToSessionSent } from "../../ports/session-to-session.ts";
import type {
  DeletionPort,
  RestoredCopy,
  SessionsPort,
  SettledPort,
  StopListenerPort,
  StopPort,
  ExportedPort,
} from "../../ports/sessions.ts";
import { createArchiveReader } from "../../storage/archive-reader.ts";
import type { Bucket } from "../../storage/bucket.ts";
import { archiveMethods } from "./archives.ts";
import { askSessions } from "./ask.ts";
import { chatMethods } from "./chat.ts";
import { SessionDeletion } from "./deletion.ts";
import { DELETION_MIGRATIONS, DeletionStore } from "./deletion-store.ts";
import { resumeFrom } from "./follow.ts";
import { sessionMethods } from "./methods.ts";
import { MODE_MIGRATIONS, SESSION_HISTORY } from "./migrations.ts";
import { resumeSessions } from "./restart.ts";
import { RunWaits } from "./run-waits.ts";
import { sendToSession } from "./session-to-session.ts";
import { checkSessions } from "./state-check.ts";
import { HELD_MIGRATIONS, STOP_MIGRATIONS, StopStore } from "./stop-store.ts";
import { MAX_TOLD, Stop, stopMethods } from "./stop.ts";
import { Sessions } from "./store.ts";
import { SESSION_TOOLS } from "./tools.ts";

export interface SessionsPorts
  extends Pick<
    KernelPorts,
    | "arm"
    | "audit"
    | "background"
    | "config"
    | "connections"
    | "contextVersion"
    | "database"
    | "followers"
    | "ids"
    | "log"
    | "now"
    | "sessionGone"
    | "sessionSpent"
    | "subscriptions"
  > {
  readonly after: (ms: number, work: () => void) => void;
  readonly bucket: Bucket;
  /** An agent's search index. */
  readonly searchIndex: (agentId: string) => SearchPort;
  /** Set while this gateway has the mark of a restored copy (rule BK23). */
  readonly restoredCopy: RestoredCopy | undefined;
  /** The object of a session, by its canonical key. */
  readonly session: (key: string) => SessionPort;
}
/** What sessions and the search index may call. */
export interface SessionsRpc {
  publish(sessionKey: string, news: readonly SessionNews[]): void;
  list(limit: number): readonly SessionEntry[];
  searchable(agentId: string, afterKey: string): SearchableSessions;
  send(input: SessionToSession): Promise<Result<SessionToSessionSent>>;
  checkState(): Promise<void>;
}
export interface SessionsOffer extends DeletionPort, ExportedPort, SessionsPort, SettledPort, StopListenerPort, StopPort {
  readonly sessionsRpc: SessionsRpc;
  readonly stopRpc: Pick<Stop, "resumeFor" | "stopFor">;
}
/** Who has stopped a copy that was restored beside its gateway. */
const RESTORED_COPY = "gsv restore";
/** Sessions of one page for the search index. */
const SEARCHED_SESSIONS = 500;

export const sessionsFeature: FeatureDefinition<SessionsPorts, SessionsOffer> = {
  name: "sessions",
  history: SESSION_HISTORY,
  migrations: [...STOP_MIGRATIONS, ...DELETION_MIGRATIONS, ...HELD_MIGRATIONS, ...MODE_MIGRATIONS],
  tools: SESSION_TOOLS,
  create(ports) {
    const sessions = new Sessions(ports.database, ports.after);
    const stops = new StopStore(ports.database);
    // Before anything else can ask whether everything is stopped.
    if (ports.restoredCopy !== undefined)
      stops.stopCopy(ports.restoredCopy.id, { since: ports.now(), by: RESTORED_COPY }, () => sessions.activeSince(0, MAX_TOLD));
    const deletions = new DeletionStore(ports.database);
    const hold = (key: string): boolean => {
      if (stops.state() === undefined) return false;
      stops.note(key);
      return true;
    };
    // A message with an older ref was on its way when the session was deleted.
    const deleted = ({ key, ref }: SessionIdentity): boolean => deletions.has(key) || sessions.find(key)?.ref !== ref;
    const ask = askSessions(ports.session, ports.log, hold, deleted);
    const stop = new Stop({ ...ports, sessions, stops, ask });
    const runWaits = new RunWaits(ports.subscriptions);
    const archives = createArchiveReader(ports.bucket);
    const deletion = new SessionDeletion({ ...ports, sessions, ask, archives, deletions });
    const inner = { ...ports, sessions, ask, runWaits, archives, deletion };
    const deleteSessions = (keys: readonly string[], also: () => void): void => {
      deletion.begin(
        keys.flatMap((key) => sessions.deletable(key) ?? []),
        also,
      );
      deletion.start(keys);
    };
    return {
      offers: {
        sessions,
        ask,
        deleteSessions,
        stopped: () => stops.state(),
        stopSignal: () => stop.signal,
        noteExported: (at) => stops.exported(at),
        stopSettled: () => stops.untoldCount() === 0,
        onStop: (work) => stop.onStop(work),
        onStopChange: (work) => stop.onChange(work),
        stopRpc: stop,
        sessionsRpc: {
          publish: (sessionKey, news) => ports.subscriptions.publish(sessionKey, news),
          // For a tool of the model, which need not know what other conversations may do.
          list: (limit) =>
            sessions
              .list(ports.now(), 0, Math.min(Math.max(1, limit), LIMITS.pageItems))
              .map(({ mode: _mode, modeUntil: _until, ...entry }) => entry),
          searchable: (agentId, afterKey) => sessions.ofAgent(agentId, afterKey, SEARCHED_SESSIONS),
          send: (input) => sendToSession(inner, input),
          checkState: () => checkSessions(inner),
        },
      },
      methods: { ...chatMethods(inner), ...sessionMethods(inner), ...archiveMethods(inner), ...stopMethods(stop, stops) },
      alarms: [stop.alarm(), deletion.alarm()],
      // A run that has its provider's key asks for it again, and gets none.
      contextVersion: () => (stops.state() === undefined ? "" : `stopped ${stops.state()?.since}`),
      restarted: async () => {
        // A restored copy that starts stopped: no session resumes a run before it knows that.
        await stop.tellUntold();
        await Promise.all([resumeSessions(inner), deletion.resume()]);
      },
      /** `resume`: the sessions that the client followed before its link broke. */
      connected(connection, { resume }) {
        if (connection.principal.mode !== "client" || !scopesOf(connection.principal).includes("read")) return;
        for (const { sessionKey, afterSeq } of resume?.sessions ?? []) {
          const found = namedSession(ports.config, sessionKey);
          if (found.ok) ports.background("resume", resumeFrom(inner, connection, found.value.key, afterSeq));
        }
      },
    };
  },
};
