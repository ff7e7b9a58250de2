// Reads requests as JSON lines {"secret", "headers", "body"}, and says for each which libraries take it.
import { createInterface } from "node:readline";
import * as standard from "standardwebhooks";
import * as svix from "svix";

for await (const line of createInterface({ input: process.stdin })) {
  const { secret, headers, body } = JSON.parse(line);
  const said = {};
  for (const [name, Webhook] of [["standardwebhooks", standard.Webhook], ["svix", svix.Webhook]]) {
    try {
      new Webhook(secret).verify(body, headers); // throws
      said[name] = JSON.parse(body).type;
    } catch (e) {
      said[name] = `refused: ${e.message}`;
    }
  }
  console.log(JSON.stringify(said));
}
