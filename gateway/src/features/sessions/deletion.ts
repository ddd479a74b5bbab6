/**
 * Deletes sessions (rules SD1-SD5). The row comes first: from then on nothing new reaches the session. Each step can be repeated, so a
 * deletion that a crash or a failure interrupted begins again with the first step. The name is free when nothing of the session is left.
 */
import type { Participant } from "../../kernel/alarms.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import { asSessionKey } from "../../../../protocol/gen/types.ts";
import type { Result } from "../../ports/result.ts";
import type { SearchPort } from "../../ports/search.ts";
import type { AskSession, DeletedSession } from "../../ports/sessions.ts";
import type { ArchiveReader } from "../../storage/archive-reader.ts";
import type { Bucket } from "../../storage/bucket.ts";
import { fileKey, parsePath, resultsPrefix } from "../../storage/keys.ts";
import { deleteMedia } from "../../storage/media-objects.ts";
import type { Deletion, DeletionStore } from "./deletion-store.ts";
import type { Sessions } from "./store.ts";

/** R2 deletes and lists at most so many at once. */
const PAGE = 1000;
const AT_ONCE = 4;
const AGAIN_MS = 10_000;

export interface DeletionPorts
  extends Pick<KernelPorts, "arm" | "background" | "log" | "now" | "sessionGone" | "sessionSpent" | "subscriptions"> {
  readonly deletions: DeletionStore;
  readonly sessions: Sessions;
  readonly ask: AskSession;
  readonly bucket: Bucket;
  readonly archives: Pick<ArchiveReader, "list">;
  readonly searchIndex: (agentId: string) => Pick<SearchPort, "forget">;
}
export interface Deleted {
  readonly archives: number;
  readonly files: number;
}

export class SessionDeletion {
  readonly #ports: DeletionPorts;
  readonly #running = new Map<string, Promise<Deleted>>();
  #again = 0;

  constructor(ports: DeletionPorts) {
    this.#ports = ports;
  }

  /** From now on nothing new reaches the sessions. `also` is part of the same transaction. */
  begin(sessions: readonly DeletedSession[], also?: () => void): void {
    this.#ports.deletions.begin(sessions, also);
    this.#again = this.#ports.now() + AGAIN_MS;
    this.#ports.arm();
  }
  /** As if it had not begun. False: its first step is under way. */
  cancel(key: string): boolean {
    if (this.#running.has(key)) return false;
    this.#ports.deletions.cancel(key);
    return true;
  }
  isUnderWay(key: string): boolean {
    return this.#ports.deletions.has(key);
  }
  /** Deletes in the background; what fails is tried again by the alarm. */
  start(keys: readonly string[]): void {
    this.#ports.background("session_deletion", this.#all(keys));
  }
  /** Rejects when a step has failed; the alarm tries it again. */
  run(key: string): Promise<Deleted> {
    const known = this.#running.get(key);
    if (known !== undefined) return known;
    const running = this.#run(key).finally(() => this.#running.delete(key));
    this.#running.set(key, running);
    return running;
  }
  alarm(): Participant {
    const { deletions, now } = this.#ports;
    return {
      name: "session_deletions",
      next: () => (deletions.count === 0 ? undefined : Math.max(this.#again, 1)),
      run: async () => {
        this.#again = now() + AGAIN_MS;
        await this.resume();
      },
    };
  }
  /** Goes on with what an earlier incarnation has begun. */
  resume(): Promise<void> {
    return this.#all(this.#ports.deletions.first(PAGE));
  }
  async #all(keys: readonly string[]): Promise<void> {
    const waiting = [...keys];
    const work = async (): Promise<void> => {
      for (let key = waiting.shift(); key !== undefined; key = waiting.shift()) {
        const of = key;
        await this.run(of).catch((error: unknown) => this.#ports.log.error("session_not_deleted", { session: of, error }));
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
  }

  async #run(key: string): Promise<Deleted> {
    const { ask, deletions, searchIndex, sessionGone, sessionSpent, sessions, subscriptions } = this.#ports;
    const session = deletions.find(key);
    if (session === undefined) return { archives: 0, files: 0 };
    sessionSpent(session, given(await ask(key, (object) => object.end())));
    const ids = session.ids ?? (await this.#idsOf(key));
    await ask(key, (object) => object.erase());
    const archives = await this.#deleteArchives(session, ids);
    await this.#deleteResults(session);
    const files = given(await deleteMedia(this.#ports.bucket, key));
    await searchIndex(session.agentId).forget(key, ids);
    deletions.end(key, () => {
      sessionGone(session);
      sessions.remove(key);
    });
    const note = { sessionKey: asSessionKey(key), kind: "note", text: "This conversation was deleted. The next message begins a new one." };
    subscriptions.publish(key, [{ event: "session", payload: note }]);
    return { archives, files };
  }
  /** Stored before the session is emptied: only the session knows the names of its oldest transcripts. */
  async #idsOf(key: string): Promise<readonly string[]> {
    const history = await this.#ports.ask(key, (session) => session.history());
    const ids = history.ok ? [history.value.currentSessionId, ...history.value.previousSessionIds] : [];
    this.#ports.deletions.noteIds(key, ids);
    return ids;
  }
  async #deleteArchives({ key, agentId }: Deletion, ids: readonly string[]): Promise<number> {
    const own = new Set(ids);
    const found = given(await this.#ports.archives.list(agentId)).filter((archive) =>
      archive.sessionKey === undefined ? own.has(archive.sessionId) : archive.sessionKey === key,
    );
    const keys = found.flatMap(({ path }) => {
      const parsed = parsePath(path);
      return parsed.ok ? [fileKey(agentId, parsed.value)] : [];
    });
    for (let at = 0; at < keys.length; at += PAGE) await this.#ports.bucket.delete(keys.slice(at, at + PAGE));
    return keys.length;
  }
  async #deleteResults({ agentId, ref }: Deletion): Promise<void> {
    const { bucket } = this.#ports;
    for (;;) {
      const page = await bucket.list({ prefix: resultsPrefix(agentId, ref), limit: PAGE });
      if (page.objects.length > 0) await bucket.delete(page.objects.map(({ key }) => key));
      if (!page.truncated) return;
    }
  }
}
function given<T>(result: Result<T>): T {
  if (result.ok) return result.value;
  throw new Error(`${result.error.reason}: ${result.error.message}`);
}
