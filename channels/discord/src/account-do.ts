/** The Durable Object of a Discord account. A shell: the kit holds the queues, platform.ts talks to Discord. */
import { AccountObject, type KitEnv } from "../../kit/src/account-object.ts";
import type { Platform, PlatformHost } from "../../kit/src/platform.ts";
import { discordPlatform } from "./platform.ts";
import { readSettings } from "./settings.ts";

export interface DiscordEnv extends KitEnv {
  /** Secret; a token in the account's configuration has priority. */
  readonly DISCORD_BOT_TOKEN?: string;
  /** Replaces https://discord.com/api, for tests and proxies. */
  readonly DISCORD_API?: string;
}
export class DiscordAccount extends AccountObject<DiscordEnv> {
  protected readonly channel = "discord";
  protected makePlatform(host: PlatformHost, config: Readonly<Record<string, unknown>>): Platform {
    const { DISCORD_BOT_TOKEN: token, DISCORD_API: api } = this.env;
    return discordPlatform(
      host,
      readSettings(config, { ...(token === undefined ? {} : { token }), ...(api === undefined ? {} : { api }) }),
    );
  }
}
