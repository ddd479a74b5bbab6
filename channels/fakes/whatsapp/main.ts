/**
 * A fake WhatsApp to play with:  node channels/fakes/whatsapp/main.ts [--port 8484]
 * It prints WHATSAPP_URL and WHATSAPP_NOISE_ROOT for the Worker; control it with `curl -d '{...}' URL/say` (README.md).
 */
import { parseArgs } from "node:util";
import { FakeWhatsApp } from "./server.ts";

const { values } = parseArgs({ options: { port: { type: "string", default: "8484" } } });
const port = Number(values.port);
if (!Number.isInteger(port) || port < 0 || port > 65_535) {
  console.error("--port takes a number from 0 to 65535.");
  process.exit(2);
}
const fake = await new FakeWhatsApp().listen(port);
fake.addPeer({ pn: "15550002222", lid: "900000002222", name: "Ann" });
fake.addPeer({ pn: "15550003333", lid: "900000003333", name: "Bob" });
fake.addGroup("120363000000000001@g.us", "Trip", ["15550002222", "15550003333", fake.account.pn]);
const http = fake.url.replace("ws:", "http:").replace("/ws/chat", "");
console.log(JSON.stringify({ http, WHATSAPP_URL: fake.url, WHATSAPP_NOISE_ROOT: fake.rootHex }));
for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.once(signal, () => {
    fake.close().then(
      () => process.exit(0),
      () => process.exit(1),
    );
  });
