/**
 * Sends the kit's parts to Discord and reports their outcome (promises P9). No retries here; each message has a nonce by which Discord
 * recognises a retry of the outbox.
 */
import type { API } from "@discordjs/core/http-only";
import type { Peer } from "../../../protocol/gen/types.ts";
import type { OutboundPart, PlatformHost, SendOutcome } from "../../kit/src/platform.ts";
import type { Directory } from "./directory.ts";
import { FileGone, loadFile } from "./files.ts";
import type { Interactions } from "./interactions.ts";
import { interactionOf, outcomeOf, referenceOf, toEdit, toLive, toMessage, toOutcome } from "./map-outbound.ts";
import { asId } from "./map-reading.ts";
import { failureOf } from "./rest-client.ts";

const MAX_ECHOES = 200;
const ECHO_MS = 1_000;

interface Target {
  readonly channelId: string;
  readonly answer?: { readonly interaction: string; readonly token: string; readonly applicationId: string };
  readonly replaces?: string;
  /** The part ends this message, whose button was pressed. */
  readonly pressed?: { readonly interaction: string; readonly messageId: string; readonly text: string };
}
class NoSuchPeer extends Error {
  override readonly name = "NoSuchPeer";
}
const isOneOf = (value: number | undefined, ...values: readonly number[]): boolean => value !== undefined && values.includes(value);

/** In a direct conversation only a command's own response: Discord removes those with the window, and the answer of a run must stay. */
const repliesToCommand = ({ peer, kind }: Pick<OutboundPart, "peer" | "kind">): boolean =>
  peer.kind !== "dm" || kind === undefined || kind === "notice";

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
  /** Our own sends that Discord has reported: nonce to message id. */
  readonly #echoes = new Map<string, string>();

  constructor(ports: SenderPorts) {
    this.#ports = ports;
  }
  /** The gateway reported one of the bot's own messages. */
  heard(nonce: string, messageId: string): void {
    this.#echoes.set(nonce, messageId);
    const [oldest] = this.#echoes.keys();
    if (oldest !== undefined && this.#echoes.size > MAX_ECHOES) this.#echoes.delete(oldest);
  }

  async send(part: OutboundPart): Promise<SendOutcome> {
    const arrived = part.attempt > 1 ? this.#echoes.get(part.nonce) : undefined;
    if (arrived !== undefined) return { kind: "sent", messageId: arrived };
    let loaded: Awaited<ReturnType<typeof loadFile>>;
    let target: Target;
    try {
      loaded = await loadFile(this.#ports.host, part);
      target = await this.#targetOf(loaded.part);
    } catch (error) {
      if (error instanceof FileGone || error instanceof NoSuchPeer) return { kind: "failed", error: error.message };
      const outcome = this.#failed(error);
      // No part of the message has been sent.
      return outcome.kind === "unsure" ? { kind: "retry", error: outcome.error } : outcome;
    }
    try {
      const messageId = await this.#post(target, loaded);
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
  /** The destination: a command's answer slot, the live text to replace, or the channel. */
  async #targetOf(part: OutboundPart): Promise<Target> {
    const interaction = repliesToCommand(part) ? interactionOf(part.replyToId) : undefined;
    const token = await this.#ports.interactions.placeFor(interaction, part.partId);
    const applicationId = this.#ports.applicationId();
    const channelId = await this.#channelOf(part.peer);
    const replaces = referenceOf(part.replaces);
    const press = part.kind === "notice" && part.file === undefined ? interactionOf(part.replyToId) : undefined;
    const asked = this.#ports.interactions.pressed(press, part.partId);
    return {
      channelId,
      ...(interaction === undefined || token === undefined || applicationId === undefined
        ? {}
        : { answer: { interaction, token, applicationId } }),
      ...(replaces === undefined ? {} : { replaces }),
      ...(press === undefined || asked === undefined ? {} : { pressed: { interaction: press, ...asked } }),
    };
  }
  async #post(
    { channelId, answer, replaces, pressed }: Target,
    { part, files, filename }: Awaited<ReturnType<typeof loadFile>>,
  ): Promise<string> {
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
        // Expired or never acknowledged: the answer goes to the channel.
        this.#ports.interactions.close(interaction);
      }
    }
    if (pressed !== undefined) {
      try {
        const { id } = await run((api) => api.channels.editMessage(channelId, pressed.messageId, toOutcome(pressed.text, part.text)));
        this.#ports.interactions.shown(pressed.interaction, part.partId);
        return id;
      } catch (error) {
        // The question was deleted: its outcome is a message of its own.
        if (failureOf(error).status !== 404) throw error;
      }
    }
    if (replaces !== undefined) {
      try {
        return (await run((api) => api.channels.editMessage(channelId, replaces, edit))).id;
      } catch (error) {
        // The message was deleted, so a new one is sent.
        if (failureOf(error).status !== 404) throw error;
      }
    }
    const body = { ...toMessage(part, filename), files: [...files] };
    try {
      return (await run((api) => api.channels.createMessage(channelId, body))).id;
    } catch (error) {
      const { message_reference: reference, ...alone } = body;
      // The quoted message cannot be referenced (50035, 160002): send without the quote.
      if (reference === undefined || !isOneOf(failureOf(error).code, 50035, 160002)) throw error;
      return (await run((api) => api.channels.createMessage(channelId, alone))).id;
    }
  }
  /** The answer was lost; if the message exists, the gateway reports it. */
  async #echoOf(nonce: string, error: unknown): Promise<string> {
    if (failureOf(error).status !== undefined) throw error;
    await new Promise<void>((resolve) => void this.#ports.host.after(ECHO_MS, resolve));
    const id = this.#echoes.get(nonce);
    if (id === undefined) throw error;
    return id;
  }
  /** The direct channel between the bot and a person; Discord creates it on request. */
  async #channelOf(peer: Peer): Promise<string> {
    // The id becomes part of a URL.
    if (asId(peer.id) === undefined) throw new NoSuchPeer("This is not a Discord conversation: Discord's ids are long numbers.");
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
    // A command's answer replaces its acknowledgement.
    if (peer.kind !== "dm" && interactionOf(replyToId) !== undefined) return undefined;
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
