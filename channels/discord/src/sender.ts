/**
 * What goes out: a part of the kit's goes to its place on Discord, and what came of it is said as it is (promises P9). It repeats
 * nothing by itself; each message has a nonce by which Discord knows a second try.
 */
import type { API } from "@discordjs/core/http-only";
import type { Peer } from "../../../protocol/gen/types.ts";
import type { OutboundPart, PlatformHost, SendOutcome } from "../../kit/src/platform.ts";
import type { Directory } from "./directory.ts";
import { FileGone, loadFile } from "./files.ts";
import type { Interactions } from "./interactions.ts";
import { interactionOf, outcomeOf, referenceOf, toEdit, toLive, toMessage } from "./map-outbound.ts";
import { asId } from "./map-reading.ts";
import { failureOf } from "./rest-client.ts";

const MAX_ECHOES = 200;
const ECHO_MS = 1_000;

interface Place {
  readonly channelId: string;
  readonly answer?: { readonly interaction: string; readonly token: string; readonly applicationId: string };
  readonly replaces?: string;
}
class NoSuchPeer extends Error {
  override readonly name = "NoSuchPeer";
}
const isOneOf = (value: number | undefined, ...values: readonly number[]): boolean => value !== undefined && values.includes(value);

export interface SenderPorts {
  readonly host: PlatformHost;
  readonly run: <T>(request: (api: API) => Promise<T>) => Promise<T>;
  readonly directory: Directory;
  readonly interactions: Interactions;
  readonly applicationId: () => string | undefined;
  /** Discord does not accept the token. */
  readonly refused: () => void;
}

export class Sender {
  readonly #ports: SenderPorts;
  /** What came back from Discord of our own sends: nonce to message id. */
  readonly #echoes = new Map<string, string>();

  constructor(ports: SenderPorts) {
    this.#ports = ports;
  }
  /** The gateway tells of a message of the bot's own. */
  heard(nonce: string, messageId: string): void {
    this.#echoes.set(nonce, messageId);
    if (this.#echoes.size > MAX_ECHOES) for (const [oldest] of [...this.#echoes].slice(0, 1)) this.#echoes.delete(oldest);
  }

  async send(part: OutboundPart): Promise<SendOutcome> {
    const arrived = part.attempt > 1 ? this.#echoes.get(part.nonce) : undefined;
    if (arrived !== undefined) return { kind: "sent", messageId: arrived };
    let loaded: Awaited<ReturnType<typeof loadFile>>;
    let place: Place;
    try {
      loaded = await loadFile(this.#ports.host.bucket, part);
      place = await this.#placeOf(loaded.part);
    } catch (error) {
      if (error instanceof FileGone || error instanceof NoSuchPeer) return { kind: "failed", error: error.message };
      const outcome = this.#failed(error);
      // Nothing of the message has been sent yet.
      return outcome.kind === "unsure" ? { kind: "retry", error: outcome.error } : outcome;
    }
    try {
      const messageId = await this.#post(place, loaded);
      this.#ports.directory.rememberOwn(messageId);
      return { kind: "sent", messageId };
    } catch (error) {
      return this.#failed(error);
    }
  }
  #failed(error: unknown): SendOutcome {
    const failure = failureOf(error);
    if (failure.status === 401) this.#ports.refused();
    return outcomeOf(failure);
  }
  /** Where it goes: to the place of a command's answer, over the message that was shown meanwhile, or to the end of the channel. */
  async #placeOf(part: OutboundPart): Promise<Place> {
    const interaction = interactionOf(part.replyToId);
    const token = await this.#ports.interactions.placeFor(interaction, part.partId);
    const applicationId = this.#ports.applicationId();
    const channelId = await this.#channelOf(part.peer);
    const replaces = referenceOf(part.replaces);
    return {
      channelId,
      ...(interaction === undefined || token === undefined || applicationId === undefined
        ? {}
        : { answer: { interaction, token, applicationId } }),
      ...(replaces === undefined ? {} : { replaces }),
    };
  }
  async #post({ channelId, answer, replaces }: Place, { part, files, filename }: Awaited<ReturnType<typeof loadFile>>): Promise<string> {
    const { run } = this.#ports;
    const edit = { ...toEdit(part, filename), files: [...files] };
    if (answer) {
      const { interaction, token, applicationId } = answer;
      try {
        const message = await run((api) => api.interactions.editReply(applicationId, token, edit));
        this.#ports.interactions.answered(interaction, part.partId);
        return message.id;
      } catch (error) {
        if (!isOneOf(failureOf(error).status, 400, 403, 404)) throw error;
        // Its time is over, or it was never acknowledged: everybody in the channel gets the answer.
        this.#ports.interactions.close(interaction);
      }
    }
    if (replaces !== undefined) {
      try {
        return (await run((api) => api.channels.editMessage(channelId, replaces, edit))).id;
      } catch (error) {
        // Somebody has deleted it: then it is written anew.
        if (failureOf(error).status !== 404) throw error;
      }
    }
    const body = { ...toMessage(part, filename), files: [...files] };
    try {
      return (await run((api) => api.channels.createMessage(channelId, body))).id;
    } catch (error) {
      const { message_reference: reference, ...alone } = body;
      // What it answers can't be answered (50035), or not by the bot (160002): better without a quote than not at all.
      if (reference === undefined || !isOneOf(failureOf(error).code, 50035, 160002)) throw error;
      return (await run((api) => api.channels.createMessage(channelId, alone))).id;
    }
  }
  /** The answer was lost; when the message is there, the gateway tells of it. */
  async #echoOf(nonce: string, error: unknown): Promise<string> {
    if (failureOf(error).status !== undefined) throw error;
    await new Promise<void>((resolve) => void this.#ports.host.after(ECHO_MS, resolve));
    const id = this.#echoes.get(nonce);
    if (id === undefined) throw error;
    return id;
  }
  /** Direct messages go to a channel between the bot and the person, which Discord makes when it is asked for it. */
  async #channelOf(peer: Peer): Promise<string> {
    // It stands in an address of Discord's.
    if (asId(peer.id) === undefined) throw new NoSuchPeer("There can be no such conversation on Discord: its ids are long numbers.");
    if (peer.kind !== "dm") return peer.id;
    const known = this.#ports.directory.dmChannel(peer.id);
    if (known !== undefined) return known;
    const { id } = await this.#ports.run((api) => api.users.createDM(peer.id));
    this.#ports.directory.rememberDm(id, peer.id);
    return id;
  }
  async typing(peer: Peer): Promise<void> {
    const channelId = await this.#channelOf(peer);
    await this.#ports.run((api) => api.channels.showTyping(channelId));
  }
  async react(peer: Peer, messageId: string, emoji: string): Promise<void> {
    const reference = referenceOf(messageId);
    if (reference === undefined) return;
    const channelId = await this.#channelOf(peer);
    await this.#ports.run((api) => api.channels.addMessageReaction(channelId, reference, emoji));
  }
  async showLive(
    peer: Peer,
    text: string,
    messageId: string | undefined,
    replyToId: string | undefined,
    nonce: string,
  ): Promise<string | undefined> {
    // The answer to a command has its place already.
    if (interactionOf(replyToId) !== undefined) return undefined;
    const channelId = await this.#channelOf(peer);
    const shown = referenceOf(messageId);
    const { run } = this.#ports;
    if (shown !== undefined) return (await run((api) => api.channels.editMessage(channelId, shown, toEdit({ text }, undefined)))).id;
    const id = await run((api) => api.channels.createMessage(channelId, { ...toLive(text, replyToId), nonce, enforce_nonce: true })).then(
      (message) => message.id,
      (error: unknown) => this.#echoOf(nonce, error),
    );
    this.#ports.directory.rememberOwn(id);
    return id;
  }
}
