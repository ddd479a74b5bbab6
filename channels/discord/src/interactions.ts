/**
 * Slash commands and buttons: Discord wants an acknowledgement within three seconds, and accepts the answer for fifteen minutes. A
 * command is acknowledged with "thinking" that only its sender sees, and the answer replaces it (an edit, which may be repeated). A
 * button is acknowledged silently; its answer becomes the end of the message that has the button, and the buttons go. That edit needs no
 * token of Discord, so it works after any wait and any restart.
 */
import { toHex } from "../../../protocol/runtime/hex.ts";
import type { API } from "@discordjs/core/http-only";
import { ApplicationCommandType, ApplicationIntegrationType, InteractionContextType, MessageFlags } from "discord-api-types/v10";
import type { PlatformHost } from "../../kit/src/platform.ts";
import { APPLICATION_COMMANDS } from "./commands.ts";
import type { Asked, Mapped } from "./map-inbound.ts";
import { failureOf } from "./rest-client.ts";

/** Discord's fifteen minutes with a margin. */
const TOKEN_MS = 14 * 60_000;
interface Open {
  readonly token: string;
  readonly at: number;
  /** The part that replaced the acknowledgement. */
  readonly answer?: string;
}
/** How long an answer can be shown in the place of the buttons. */
const PRESSED_MS = 24 * 3_600_000;
interface Pressed extends Asked {
  readonly at: number;
  /** The part that was added to the message. */
  readonly answer?: string;
}
export interface InteractionPorts {
  readonly host: PlatformHost;
  readonly run: <T>(request: (api: API) => Promise<T>) => Promise<T>;
  readonly applicationId: () => string | undefined;
}

export class Interactions {
  readonly #ports: InteractionPorts;
  /** Acknowledgements under way; an answer must wait for its own. */
  readonly #deferring = new Map<string, Promise<void>>();
  constructor(ports: InteractionPorts) {
    this.#ports = ports;
  }

  /** Call in the transaction that stores the interaction. Only commands get an answer slot; a button has its message. */
  open({ id, token, kind, asked }: NonNullable<Mapped["interaction"]>): void {
    const { kv, now } = this.#ports.host;
    if (kind === "command") kv.put(`i.${id}`, { token, at: now() } satisfies Open);
    else if (asked !== undefined) kv.put(`b.${id}`, { ...asked, at: now() } satisfies Pressed);
  }
  /** The message whose button was pressed, when this part is its answer. */
  pressed(id: string | undefined, partId: string): Asked | undefined {
    const pressed = id === undefined ? undefined : this.#ports.host.kv.get<Pressed>(`b.${id}`);
    return pressed === undefined || (pressed.answer !== undefined && pressed.answer !== partId) ? undefined : pressed;
  }
  shown(id: string, partId: string): void {
    const { kv } = this.#ports.host;
    const pressed = kv.get<Pressed>(`b.${id}`);
    if (pressed) kv.put(`b.${id}`, { ...pressed, answer: partId } satisfies Pressed);
  }
  /** Call as soon as the interaction is stored. */
  async defer(interaction: NonNullable<Mapped["interaction"]>): Promise<void> {
    const { id } = interaction;
    const work = this.#defer(interaction);
    this.#deferring.set(id, work);
    await work;
    this.#deferring.delete(id);
  }
  async #defer({ id, token, kind }: NonNullable<Mapped["interaction"]>): Promise<void> {
    const { host, run } = this.#ports;
    try {
      await run((api) =>
        kind === "command"
          ? api.interactions.defer(id, token, { flags: MessageFlags.Ephemeral })
          : api.interactions.deferMessageUpdate(id, token),
      );
    } catch (error) {
      const { status, code } = failureOf(error);
      host.log("defer_failed", { status, code });
      // Too late, or used by another part: the answer goes to the channel.
      if (status !== undefined && status >= 400 && status < 500) host.kv.delete(`i.${id}`);
    }
  }
  /** The token that accepts this part, until it expires. */
  async placeFor(id: string | undefined, partId: string): Promise<string | undefined> {
    if (id === undefined) return undefined;
    await this.#deferring.get(id);
    const { host } = this.#ports;
    const open = host.kv.get<Open>(`i.${id}`);
    if (!open || host.now() - open.at >= TOKEN_MS) return undefined;
    return open.answer === undefined || open.answer === partId ? open.token : undefined;
  }
  answered(id: string, partId: string): void {
    const { host } = this.#ports;
    const open = host.kv.get<Open>(`i.${id}`);
    if (open) host.kv.put(`i.${id}`, { ...open, answer: partId });
  }
  close(id: string): void {
    this.#ports.host.kv.delete(`i.${id}`);
  }
  /** The answer is an ordinary message, so the acknowledgement is deleted. */
  async dismiss(id: string): Promise<void> {
    const { host } = this.#ports;
    await this.#deferring.get(id);
    const open = host.kv.get<Open>(`i.${id}`);
    if (!open || open.answer !== undefined) return;
    host.kv.delete(`i.${id}`);
    await this.#remove(open.token);
  }
  async #remove(token: string): Promise<void> {
    const applicationId = this.#ports.applicationId();
    if (applicationId === undefined) return;
    await this.#ports.run((api) => api.interactions.deleteReply(applicationId, token)).catch(() => {});
  }
  /** Ends expired interactions, whose "thinking" would otherwise stay. */
  async sweep(): Promise<void> {
    const { host } = this.#ports;
    for (const key of host.kv.keys("b.")) {
      const pressed = host.kv.get<Pressed>(key);
      if (!pressed || host.now() - pressed.at >= PRESSED_MS) host.kv.delete(key);
    }
    for (const key of host.kv.keys("i.")) {
      const open = host.kv.get<Open>(key);
      if (open && host.now() - open.at < TOKEN_MS) continue;
      host.kv.delete(key);
      if (open && open.answer === undefined) await this.#remove(open.token);
    }
  }
  /** Registers the commands at Discord when they changed since the last time. */
  async register(): Promise<void> {
    const { host, run } = this.#ports;
    const applicationId = this.#ports.applicationId();
    const told = `${applicationId}:${await hashOf(JSON.stringify(APPLICATION_COMMANDS))}`;
    if (applicationId === undefined || host.kv.get<string>("commands") === told) return;
    try {
      await run((api) =>
        api.applicationCommands.bulkOverwriteGlobalCommands(
          applicationId,
          APPLICATION_COMMANDS.map(({ options, ...command }) => ({
            ...command,
            type: ApplicationCommandType.ChatInput,
            // In servers and in direct messages with the bot.
            contexts: [InteractionContextType.Guild, InteractionContextType.BotDM],
            integration_types: [ApplicationIntegrationType.GuildInstall],
            ...(options === undefined ? {} : { options: [...options] }),
          })),
        ),
      );
      host.kv.put("commands", told);
    } catch (error) {
      const { status, code } = failureOf(error);
      host.log("commands_failed", { status, code });
    }
  }
}
async function hashOf(text: string): Promise<string> {
  const bytes = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
  return toHex(bytes.slice(0, 8));
}
