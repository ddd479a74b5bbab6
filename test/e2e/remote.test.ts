/** Other machines: two homes as two machines, and TLS between them on an address that only the second one uses. */
import assert from "node:assert/strict";
import { request as plainRequest } from "node:http";
import { request } from "node:https";
import { connect, type PeerCertificate } from "node:tls";
import { after, before, describe, it } from "node:test";
import { freePort, Machine } from "./support.ts";

const HOST = "127.0.0.2";

interface Listening {
  readonly address: string;
  readonly fingerprint: string;
}

describe("a gateway that listens for other machines", () => {
  const here = new Machine();
  const there = new Machine();
  let port: number;
  let fingerprint: string;
  const address = (pin = fingerprint): string => `wss://${HOST}:${port}/ws#sha256=${pin}`;
  const there$ = (...args: string[]) => there.gsv(args, { env: { GSV_URL: address(), GSV_TOKEN: here.token } });

  before(async () => {
    port = await freePort();
    await here.usePort();
    await here.ok("up", "--listen", `${HOST}:${port}`);
    const { listening } = JSON.parse(await here.ok("up", "--json")) as { listening: Listening };
    assert.equal(listening.address, `${HOST}:${port}`);
    fingerprint = listening.fingerprint;
    await here.ok("config", "set", "toolApproval.defaultDecision", "allow");
  });
  after(async () => {
    await there.end();
    await here.end();
  });

  /** The status of `GET /health` under this Host header. */
  const health = (host: string): Promise<number> =>
    new Promise((resolve, reject) => {
      const options = { host: HOST, port, path: "/health", headers: { host }, rejectUnauthorized: false };
      request(options, (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      })
        .on("error", reject)
        .end();
    });

  const local = (host: string): Promise<number> =>
    new Promise((resolve, reject) => {
      plainRequest({ host: "127.0.0.1", port: here.port, path: "/health", headers: { host } }, (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      })
        .on("error", reject)
        .end();
    });

  it("[RM2] shows the certificate whose fingerprint `gsv up` and `gsv status` tell", async () => {
    const certificate = await new Promise<PeerCertificate>((resolve, reject) => {
      const socket = connect({ host: HOST, port, rejectUnauthorized: false }, () => {
        resolve(socket.getPeerCertificate());
        socket.destroy();
      });
      socket.on("error", reject);
    });
    assert.equal(certificate.fingerprint256.replaceAll(":", "").toLowerCase(), fingerprint);
    assert.match(await here.ok("status"), new RegExp(`listens +${HOST}:${port} \\(TLS, certificate ${fingerprint}\\)`));
    assert.match((await here.gsv(["doctor", "--offline"])).stdout, new RegExp(`listening +${HOST}:${port}`));
  });

  it("[RM4] a client on another machine comes in with the fingerprint, and with no other one", async () => {
    const good = await there$("status", "--json");
    assert.equal(good.code, 0, good.stderr);
    assert.equal((JSON.parse(good.stdout) as { reachable: boolean }).reachable, true);
    const wrong = await there.gsv(["status"], { env: { GSV_URL: address("0".repeat(64)), GSV_TOKEN: here.token } });
    assert.equal(wrong.code, 3, wrong.stdout);
    assert.match(wrong.stderr, /another certificate/);
    const unpinned = await there.gsv(["status"], { env: { GSV_URL: `wss://${HOST}:${port}/ws`, GSV_TOKEN: here.token } });
    // [RM14] The address is right but for the fingerprint.
    assert.deepEqual([unpinned.code, /fingerprint, `#sha256=/.test(unpinned.stderr)], [3, true], unpinned.stderr);
  });

  it("[RM6] [F77] any Host is right over the gateway's own TLS, and only this machine's on loopback", async () => {
    assert.equal(await health("192.168.7.7:8788"), 200);
    assert.equal(await local("localhost"), 200);
    assert.equal(await local("192.168.7.7:8788"), 403);
  });

  it("[RM1] after a crash of workerd other machines come in again", async () => {
    await here.killWorkerd();
    const again = await there$("status");
    assert.equal(again.code, 0, again.stderr);
  });
});
