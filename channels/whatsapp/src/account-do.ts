/** The Durable Object of a WhatsApp account: the kit's object with WhatsApp as its platform. A shell without rules. */
import { AccountObject, type KitEnv } from "../../kit/src/account-object.ts";
import type { Platform, PlatformHost } from "../../kit/src/platform.ts";
import { checkServerKey, checkSignatures, proveSignatures } from "./platform/trust.ts";
import { WhatsApp } from "./whatsapp.ts";

export interface WhatsAppEnv extends KitEnv {
  /** Another server and its root key; used only for a server on this machine (tests). */
  readonly WHATSAPP_URL?: string;
  readonly WHATSAPP_NOISE_ROOT?: string;
}
let proven = false;

export class WhatsAppAccount extends AccountObject<WhatsAppEnv> {
  protected override readonly channel = "whatsapp";

  protected override makePlatform(host: PlatformHost, config: Readonly<Record<string, unknown>>): Platform {
    if (!proven) {
      checkSignatures();
      proveSignatures();
      checkServerKey(() => Date.now());
      proven = true;
    }
    return new WhatsApp(host, {
      url: this.env.WHATSAPP_URL,
      noiseRoot: this.env.WHATSAPP_NOISE_ROOT,
      selfChat: config["selfChat"] === true,
      random: () => Math.random(),
    });
  }
}
