/**
 * Tells notifications at their time (rules NT3-NT7). What is told has an id that is made from the row, so that it can be sent again, and
 * a desktop is noted before it is asked. Each notification is told on its own: no other, and no alarm, waits for a place that is slow.
 */
import { backoffMs } from "../../../../protocol/runtime/backoff.ts";
import { type After, within } from "../../../../protocol/runtime/within.ts";
import { verbatim } from "../../calls/shown-call.ts";
import { canonicalKey } from "../../kernel/routing/session-keys.ts";
import { digestText, firstLine } from "../../notify/digest.ts";
import { KINDS } from "../../notify/kinds.ts";
import { isHeld, placeOf, quietHours, type Way, waysOf } from "../../notify/places.ts";
import { quietUntil } from "../../notify/quiet.ts";
import type { NotificationRow } from "../../ports/notify.ts";
import { failure, sentence } from "../../ports/result.ts";
import type { NamedSession } from "../../ports/sessions.ts";
import { parseTarget, type Target, targetName } from "../../tools/message-target.ts";
import type { Desktops } from "./desktops.ts";
import type { NotificationsPorts } from "./ports.ts";

export interface TellerPorts extends NotificationsPorts {
  readonly desktops: Pick<Desktops, "able" | "show">;
  readonly timer: After;
}
/** Told at the same time. */
const AT_ONCE = 20;
const LOOKED_AT = 100;
const RETRY_MIN_MS = 2_000;
const RETRY_MAX_MS = 300_000;
/** A channel or a conversation that has not answered by then is asked again later. */
const ANSWER_MS = 30_000;
/** The alarm looks this often at notifications that are being told: it tells them again after the instance has been killed. */
const LOOK_AGAIN_MS = 60_000;
const DESKTOP = "desktop/";
const MAIN_WAY = "main";
const DESKTOP_CHARS = 240;
const MAX_DESKTOPS = 3;
/** A channel that does not answer is asked this often. */
const MAX_TRIES = 3;
/** Older than this when it is told: it was held back. */
const HELD_MS = 60_000;

/** The text of a notification: as it is, and as a chat shows it. */
interface Told {
  readonly text: string;
  readonly inChat: string;
  /** A part of the text is an agent's: the text of a reminder. */
  readonly byAgent: boolean;
}
export class Teller {
  readonly #ports: TellerPorts;
  /** What is being told, with its end and the time of the alarm's next look. Memory only: the rows wait until they have been told. */
  readonly #telling = new Map<number, { readonly ended: Promise<void>; lookAt: number }>();

  constructor(ports: TellerPorts) {
    this.#ports = ports;
  }

  /** Starts to tell what is due. */
  start(): void {
    const { background, now } = this.#ports;
    const lookAt = now() + LOOK_AGAIN_MS;
    for (const telling of this.#telling.values()) if (telling.lookAt <= now()) telling.lookAt = lookAt;
    for (const row of this.#due()) {
      const ended = Promise.resolve()
        .then(() => this.#tellOrWait(row))
        .finally(() => this.#ended(row.id));
      this.#telling.set(row.id, { ended, lookAt });
      background("tell_notification", ended);
    }
  }
  #ended(id: number): void {
    const wasFull = this.#telling.size >= AT_ONCE;
    this.#telling.delete(id);
    if (wasFull) this.start();
    this.#ports.arm();
  }
  /** Resolves when the notification is not being told any more. */
  async ended(id: number): Promise<void> {
    await this.#telling.get(id)?.ended;
  }

  /** When the alarm must look next. */
  next(): number | undefined {
    const { notifyRows, now } = this.#ports;
    const at = now();
    const isFull = this.#telling.size >= AT_ONCE;
    const rows = notifyRows.waiting(LOOKED_AT);
    const quiet = rows.some(({ dueAt }) => dueAt <= at) ? this.#quietUntil(at) : undefined;
    const times = rows.flatMap((row) => {
      const { id, dueAt } = row;
      const lookAt = this.#telling.get(id)?.lookAt;
      if (lookAt !== undefined) return [lookAt];
      if (isFull) return [];
      return [quiet !== undefined && dueAt <= at && this.#mayBeHeld(row) ? quiet : dueAt];
    });
    return times.length === 0 ? undefined : Math.min(...times);
  }
  #quietUntil(at: number): number | undefined {
    const hours = quietHours(this.#ports.config.effective());
    return hours.ok ? quietUntil(hours.value, at) : undefined;
  }
  /** Quiet hours hold it back. */
  #mayBeHeld({ kind, body }: NotificationRow): boolean {
    return body.now !== true && isHeld(this.#ports.config.effective(), kind);
  }

  #due(): readonly NotificationRow[] {
    const { notifyRows, config, now } = this.#ports;
    const at = now();
    const settings = config.effective();
    const isQuiet = this.#quietUntil(at) !== undefined;
    const due = notifyRows
      .waiting(LOOKED_AT)
      .filter((row) => row.dueAt <= at && !this.#telling.has(row.id) && !(isQuiet && this.#mayBeHeld(row)));
    // Notifications that were held back for the same place are told together.
    const groups = Map.groupBy(due, (row) => {
      const { id, kind, agentId, createdAt, body } = row;
      const mayJoin = body.question === undefined && body.failures === undefined && body.asked === undefined;
      if (!mayJoin || at - createdAt <= HELD_MS) return `alone ${id}`;
      const place = placeOf(settings, kind);
      const about = waysOf(place).length > 1 ? (body.about ?? "") : "";
      return JSON.stringify([place, agentId, body.inSession ?? "", body.toldSession ?? "", about]);
    });
    return [...groups.values()].slice(0, AT_ONCE - this.#telling.size).flatMap(([first, ...others]) => {
      if (first === undefined) return [];
      if (others.length > 0)
        notifyRows.merge(
          first.id,
          others.map(({ id }) => id),
        );
      return [first];
    });
  }

  async #tellOrWait(row: NotificationRow): Promise<void> {
    const { notifyRows, now, log } = this.#ports;
    try {
      await this.#tell(row);
    } catch (error) {
      const tries = (row.body.tries ?? 0) + 1;
      notifyRows.wait(row.id, now() + backoffMs(tries, RETRY_MIN_MS, RETRY_MAX_MS));
      log.warn("notification_not_told", { id: row.id, kind: row.kind, error });
    }
  }
  async #tell(row: NotificationRow): Promise<void> {
    const { notifyRows, config, now } = this.#ports;
    const { id } = row;
    const settings = config.effective();
    const at = now();
    // A text that may have been told already is told again as it was.
    const isTrue = ({ body }: NotificationRow): boolean => row.body.asked !== undefined || (body.until ?? at + 1) > at;
    const present = notifyRows.together(id).filter(isTrue);
    if (present.length === 0) return notifyRows.drop(id);
    const said = present.map(({ cause, text, createdAt, body }) => ({ cause, text, createdAt, more: body.more ?? 0 }));
    const digest = digestText(said, settings.userTimezone);
    const isMarkdown = present.every(({ body }) => body.isMarkdown === true);
    const told: Told = {
      text: digest,
      inChat: isMarkdown ? digest : verbatim(digest),
      byAgent: present.some(({ kind }) => kind === "reminder"),
    };
    if (row.body.asked?.startsWith(DESKTOP) === true) {
      notifyRows.failed(id, row.body.asked, "It is not known whether it was shown.");
      notifyRows.asked(id, undefined);
    }
    for (const way of waysOf(placeOf(settings, row.kind))) {
      if (way.kind === "none") return notifyRows.end(id, "off", now());
      const toldIn = await this.#try(way, row, told);
      // The channel may have reported already that the platform did not take it.
      if (toldIn !== undefined && !this.#hasFailed(id, toldIn)) return notifyRows.end(id, "told", now(), toldIn);
    }
  }
  #hasFailed(id: number, way: string): boolean {
    return this.#ports.notifyRows.find(id)?.body.failures?.some((failure) => failure.way === way) === true;
  }

  /** Returns where it was told; undefined: this way does not work. Each way once, also after a restart. */
  async #try(way: Way, row: NotificationRow, told: Told): Promise<string | undefined> {
    switch (way.kind) {
      case "last":
        return this.#overChannel(this.#lastOwn(), row, told);
      case "channel":
        return this.#overChannel(way.target, row, told);
      case "desktop":
        return this.#onDesktop(way.nodeId, row, told.text);
      default:
        return this.#inSession(row, told.text);
    }
  }
  #lastOwn(): Target | undefined {
    const own = this.#ports.channelsOut.lastOwn();
    return own === undefined ? undefined : parseTarget(own);
  }
  async #overChannel(
    target: Target | undefined,
    { id, body }: NotificationRow,
    { inChat: text, byAgent }: Told,
  ): Promise<string | undefined> {
    const { channelsOut, notifyRows } = this.#ports;
    const { about, question, tries = 0 } = body;
    if (target === undefined) {
      notifyRows.failed(id, "last", "You have no direct chat with the agent yet.");
      return undefined;
    }
    const place = { accountId: "default", ...target };
    const way = targetName(place);
    if (this.#hasFailed(id, way)) return undefined;
    const isAboutIt = about?.channel === place.channel && about.accountId === place.accountId;
    const problem = isAboutIt ? "It is about this channel." : channelsOut.problemOf(place);
    if (problem === undefined) {
      const failures = notifyRows.find(id)?.body.failures ?? [];
      // The same id when it is sent again, and another one for another place.
      const message = { callId: `notify/${id}/${failures.length}`, target: place, text, byAgent };
      notifyRows.asked(id, way);
      const sending = channelsOut.notify({ ...message, ...(question === undefined ? {} : { question }) });
      const sent = await this.#answer(sending).catch((error: unknown) => {
        // It may have the message: it gets the same one again, a few times.
        if (tries < MAX_TRIES) throw error;
        return failure("channel.failed", `The channel ${place.channel} does not answer.`);
      });
      if (sent.ok) return way;
      notifyRows.failed(id, way, sentence(sent.error));
    } else notifyRows.failed(id, way, problem);
    return undefined;
  }
  async #onDesktop(nodeId: string | undefined, { id, kind }: NotificationRow, text: string): Promise<string | undefined> {
    const { desktops, notifyRows } = this.#ports;
    const { nodeIds, problem } = desktops.able(nodeId);
    if (nodeIds.length === 0) notifyRows.failed(id, nodeId === undefined ? "desktop" : desktopName(nodeId), problem);
    for (const each of nodeIds.slice(0, MAX_DESKTOPS)) {
      const way = desktopName(each);
      if (this.#hasFailed(id, way)) continue;
      // Noted before: after a kill it is not known whether this desktop has shown it, and it is not asked again.
      notifyRows.asked(id, way);
      const why = await desktops.show(each, `n${id}`, KINDS[kind].title, firstLine(text, DESKTOP_CHARS));
      notifyRows.asked(id, undefined);
      if (why === undefined) return way;
      notifyRows.failed(id, way, why);
    }
    return undefined;
  }
  /** A note in the conversation that it is about when that is the owner's, else where the owner looks. */
  async #inSession({ id, key, agentId, body }: NotificationRow, text: string): Promise<string> {
    const { ask, config, notifyRows, now, sessions } = this.#ports;
    const named = body.inSession === undefined ? undefined : this.#owners(body.inSession);
    const agent = config.hasAgent(agentId) ? agentId : config.defaultAgentId();
    // The same conversation when it is told again: the note's key is known there.
    const before = body.asked === undefined ? undefined : this.#owners(body.asked);
    const main = named ?? before ?? this.#ownersOf(agent);
    if (main === undefined) throw new Error("there is no main conversation");
    if (body.toldSession !== main.key) {
      const identity = sessions.takeUp(main, now());
      // Others of its cause do not join a text that may be in the conversation already.
      notifyRows.asked(id, main.key);
      await this.#answer(ask(main.key, (session) => session.note({ identity, key, text })));
    }
    return named === undefined && main.address.form === "main" ? MAIN_WAY : main.key;
  }
  #answer<T>(answer: Promise<T>): Promise<T> {
    return within(this.#ports.timer, ANSWER_MS, answer, () => {
      throw new Error("there is no answer");
    });
  }
  /** Nothing shows the main conversation by itself, as `gsv chat` does with that of the command line. */
  #ownersOf(agentId: string): NamedSession | undefined {
    const key = this.#ports.sessions.atCommandLine(agentId);
    return (key === undefined ? undefined : this.#owners(key)) ?? this.#owners(`agent:${agentId}:main`);
  }
  #owners(key: string): NamedSession | undefined {
    const { config, sessions } = this.#ports;
    const named = canonicalKey(key, config.mainKey());
    return named.ok && sessions.isOwners(named) ? named : undefined;
  }
}
const desktopName = (nodeId: string): string => `${DESKTOP}${nodeId}`;
