import { afterEach, describe, expect, test } from "vitest";
import { soon } from "../support/soon.ts";
import type { WorldOptions } from "./chat-world.ts";
import { ChatWorld } from "./chat-world.ts";
import { slackAuthorization, slackBot } from "./slack-stand-in.ts";

const worlds: ChatWorld[] = [];

afterEach(async () => {
  for (const world of worlds.splice(0)) await world.close();
});

async function openWorld(options?: WorldOptions): Promise<ChatWorld> {
  const world = await ChatWorld.open(options);
  worlds.push(world);
  return world;
}

const pixel =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const mention = `<@${slackBot}>`;
const ann = { id: 5, name: "Ann" };
const bob = { id: 6, name: "Bob" };

describe("Slack", () => {
  test("[CHT1] a message that mentions the bot is answered in its thread", async () => {
    const { slack, model, slackSends, keys } = bind(await openWorld());
    expect(await slackSends(slack.event({ text: `${mention} Is it fixed?`, ts: "1800000000.000100" }))).toBe(
      200,
    );
    const request = await model.request(0);
    expect(request.lastUserText).toContain("Is it fixed?");
    request.finish("Yes, since noon.");
    const { params } = await slack.call("chat.postMessage");
    expect(params).toMatchObject({ channel: "C0DESK", thread_ts: "1800000000.000100" });
    expect(JSON.stringify(params)).toContain("Yes, since noon.");
    expect(await keys()).toEqual(["agent:main:team:group:C0DESK:thread:1800000000.000100"]);
  });

  test("[CHT2] an answer is posted while it is being written, and then edited", async () => {
    const { slack, model, slackSends } = bind(await openWorld());
    await slackSends(slack.event({ text: "Tell me a story", channel: "D0ANN" }));
    const request = await model.request(0);
    request.stream("Once upon a time");
    const posted = await slack.call("chat.postMessage");
    expect(JSON.stringify(posted.params)).toContain("Once upon a time");
    request.stream(" there was a loom");
    const edited = await slack.call("chat.update");
    expect(JSON.stringify(edited.params)).toContain("there was a loom");
    request.finish(", and it wove.");
    await soon(() => JSON.stringify(slack.of("chat.update").at(-1)?.params)).toContain("and it wove.");
    expect(slack.of("chat.postMessage")).toHaveLength(1);
    for (const { params } of slack.of("chat.update")) expect(params.ts).toBe("1900000000.000001");
  });

  test("[CHT3] a request with an invalid signature is rejected", async () => {
    const { slack, model, slackSends, keys } = bind(await openWorld());
    const event = slack.event({ text: "Hello", channel: "D0ANN" });
    expect(await slackSends(event, { secret: "f".repeat(32) })).toBe(401);
    expect([model.count, await keys()]).toEqual([0, []]);
  });

  test("[CHT4] an event that is delivered again is answered once, also after a restart", async () => {
    const { world, slack, model, slackSends, keys } = bind(await openWorld());
    const event = slack.event({ text: "Only once", channel: "D0ANN" });
    const statuses = await Promise.all([slackSends(event), slackSends(event, { retry: 1 })]);
    (await model.request(0)).finish("Once.");
    await slack.call("chat.postMessage");
    await world.restart();
    statuses.push(await slackSends(event, { retry: 2 }), await slackSends(event));
    // A later message is answered after all earlier ones.
    await slackSends(slack.event({ text: "And this", channel: "D0ANN", ts: "1800000000.000200" }));
    (await model.request(1)).finish("Twice.");
    await slack.call("chat.postMessage", 1);
    expect(statuses).toEqual([200, 200, 200, 200]);
    expect([model.count, slack.of("chat.postMessage").length]).toEqual([2, 2]);
    expect(await keys()).toEqual(["agent:main:team:user:U0ANN"]);
  });

  test("[CHT5] in a group, the model is told who wrote each message", async () => {
    const { slack, model, slackSends } = bind(await openWorld());
    const thread = "1800000000.000100";
    await slackSends(slack.event({ text: `${mention} I prefer tea`, user: "U0ANN", ts: thread }));
    (await model.request(0)).finish("Noted.");
    await slack.call("chat.postMessage");
    await slackSends(
      slack.event({ text: "I prefer coffee", user: "U0BOB", ts: "1800000000.000200", thread }),
    );
    const { messages } = await model.request(1);
    const said = JSON.stringify(messages);
    expect(said).toContain("Ann: I prefer tea");
    expect(said).toContain("Bob: I prefer coffee");
  });

  test("[CHT6] a group message that does not mention the bot is ignored outside of its threads", async () => {
    const { world, slack, model, slackSends } = bind(await openWorld());
    const thread = "1800000000.000100";
    await slackSends(slack.event({ text: `${mention} join us`, ts: thread }));
    (await model.request(0)).finish("Here.");
    await slack.call("chat.postMessage");
    await world.restart();
    await slackSends(slack.event({ text: "not for the bot", ts: "1800000000.000300" }));
    await slackSends(slack.event({ text: "from a bot", ts: "1800000000.000400", thread, botId: "B1" }));
    await slackSends(slack.event({ text: "and now?", ts: "1800000000.000500", thread }));
    const request = await model.request(1);
    expect(request.lastUserText).toContain("and now?");
    expect(JSON.stringify(request.messages)).not.toMatch(/not for the bot|from a bot/);
  });
});

describe("files on Slack", () => {
  const host = "files.slack.com";
  const fileOf = (name: string, mimetype: string, size: number) => ({
    ...{ id: `F${name}`, name, mimetype, size, url_private: `https://${host}/files-pri/T0/${name}` },
  });
  const addressOf = (name: string) => `${host}/files-pri/T0/${name}`;
  let restore: (() => void) | undefined;
  afterEach(() => restore?.());

  async function openSlack() {
    const bound = bind(await openWorld());
    restore = bound.slack.serveFiles();
    return bound;
  }

  test("[CHT12] the model sees an image and reads a text file, which are downloaded with the bot token", async () => {
    const { slack, model, slackSends } = await openSlack();
    const image = Buffer.from(pixel, "base64");
    const notes = Buffer.from("The pump is in the cellar.");
    slack.files.set(addressOf("pump.png"), image).set(addressOf("notes.txt"), notes);
    const files = [
      fileOf("pump.png", "image/png", image.length),
      fileOf("notes.txt", "text/plain", notes.length),
    ];
    expect(await slackSends(slack.event({ text: "What is this?", channel: "D0ANN", files }))).toBe(200);
    const request = await model.request(0);
    expect(JSON.stringify(request.messages.at(-1))).toContain(`data:image/png;base64,${pixel}`);
    expect(request.lastUserText).toContain(
      "What is this?\n\n[File: notes.txt (text/plain, 26 bytes)]\nThe pump is in the cellar.",
    );
    const download = { host, authorization: slackAuthorization };
    expect(slack.downloads).toEqual([download, download]);
  });

  test("[CHT17] a message reaches the model with the name, type and size of files that cannot be downloaded", async () => {
    const { slack, model, slackSends } = await openSlack();
    slack.files.set(addressOf("broken.txt"), "broken");
    const files = [fileOf("gone.png", "image/png", 70), fileOf("broken.txt", "text/plain", 26)];
    expect(await slackSends(slack.event({ text: "What is this?", channel: "D0ANN", files }))).toBe(200);
    expect((await model.request(0)).lastUserText).toBe(
      "What is this?\n\n[File: gone.png (image/png, 70 bytes), could not be downloaded]\n\n[File: broken.txt (text/plain, 26 bytes), could not be downloaded]",
    );
    expect(slack.downloads).toHaveLength(2);
  });

  test("[CHT18] the bot token is not sent to another host", async () => {
    const { slack, model, slackSends } = await openSlack();
    slack.files.set(addressOf("notes.txt"), { location: "https://elsewhere.example/notes.txt" });
    slack.files.set("elsewhere.example/notes.txt", Buffer.from("From elsewhere."));
    const foreign = {
      ...fileOf("other.txt", "text/plain", 15),
      url_private: "https://elsewhere.example/notes.txt",
    };
    const files = [fileOf("notes.txt", "text/plain", 15), foreign];
    await slackSends(slack.event({ text: "What is this?", channel: "D0ANN", files }));
    expect((await model.request(0)).lastUserText).toContain("From elsewhere.");
    const elsewhere = { host: "elsewhere.example", authorization: undefined };
    expect(slack.downloads).toEqual([{ host, authorization: slackAuthorization }, elsewhere, elsewhere]);
  });
});

test("[CHT16] a request that failed is accepted when it is sent again", async () => {
  const { world, slack, model, slackSends } = bind(await openWorld());
  slack.failNext("auth.test", { body: { ok: false, error: "internal_error" } });
  const event = slack.event({ text: "Hello", channel: "D0ANN" });
  expect(await slackSends(event)).toBe(503);
  expect(world.log()).toContain("Slack did not accept channels.team.settings.botToken");
  expect(await slackSends(event, { retry: 1 })).toBe(200);
  expect((await model.request(0)).lastUserText).toBe("Hello");
});

describe("approvals", () => {
  test("[CHT7] an approval is asked for with buttons, which only the person who wrote can use", async () => {
    const { world, slack, model, slackSends } = bind(await openWorld({ ask: ["sessions_list"] }));
    const thread = "1800000000.000100";
    await slackSends(slack.event({ text: `${mention} list them`, user: "U0ANN", ts: thread }));
    (await model.request(0)).callTool("sessions_list", {});
    const card = await slack.call("chat.postMessage");
    expect(card.params).toMatchObject({ channel: "C0DESK", thread_ts: thread });
    expect(JSON.stringify(card.params)).toContain("sessions_list");
    expect(await slackSends(slack.press(card, "Approve", "U0BOB"))).toBe(200);
    await slack.call("chat.postEphemeral");
    expect(await world.openApprovals()).toBe(1);
    expect(await slackSends(slack.press(card, "Approve", "U0ANN"))).toBe(200);
    expect(await world.openApprovals()).toBe(0);
    const request = await model.request(1);
    expect(request.messages.at(-1)).toMatchObject({ role: "tool" });
    expect(JSON.stringify(request.messages.at(-1))).toContain("team:group:C0DESK");
    request.finish("That is all of them.");
    await slack.call("chat.postMessage", 1);
    const { params } = await slack.call("chat.update");
    expect(params.ts).toBe("1900000000.000001");
    expect(JSON.stringify(params)).toMatch(/sessions_list.*was approved by Ann/);
    expect(String(params.blocks)).not.toContain("button");
  });

  test("[CHT7] a denied call is not executed", async () => {
    const { telegram, model, telegramSends } = bind(await openWorld({ ask: ["sessions_list"] }));
    await telegramSends(telegram.update({ text: "list them" }));
    (await model.request(0)).callTool("sessions_list", {});
    const card = await telegram.call("sendMessage");
    await telegramSends(telegram.press(card, 5001, "Deny", ann));
    const request = await model.request(1);
    expect(JSON.stringify(request.messages.at(-1))).toContain("rejected");
    request.finish("As you wish.");
    await telegram.call("sendMessage", 1);
  });

  test("[CHT7] buttons that could not be posted are posted later, and the answer is shown in place of them", async () => {
    const { telegram, model, telegramSends } = bind(await openWorld({ ask: ["sessions_list"] }));
    const busy = { status: 502, body: { ok: false, error_code: 502, description: "Bad Gateway" } };
    await telegramSends(telegram.update({ text: "list them" }));
    telegram.failNext("sendMessage", busy, busy);
    telegram.failNext("editMessageText", busy);
    (await model.request(0)).callTool("sessions_list", {});
    const card = await telegram.call("sendMessage");
    await telegramSends(telegram.press(card, 5001, "Approve", ann));
    (await model.request(1)).finish("That is all.");
    const edits = () => telegram.of("editMessageText").map(({ params }) => params.text);
    await soon(() => edits().join()).toMatch(/was approved by Ann/);
  });

  test("[CHT7] buttons that were not posted before a restart are posted after it", async () => {
    const { world, telegram, model, telegramSends } = bind(await openWorld({ ask: ["sessions_list"] }));
    const forbidden = { status: 403, body: { ok: false, error_code: 403, description: "Forbidden" } };
    await telegramSends(telegram.update({ text: "list them" }));
    telegram.failNext("sendMessage", forbidden);
    (await model.request(0)).callTool("sessions_list", {});
    await soon(() => world.openApprovals()).toBe(1);
    await world.restart();
    const card = await telegram.call("sendMessage");
    await telegramSends(telegram.press(card, 5001, "Approve", ann));
    (await model.request(1)).finish("That is all.");
    await telegram.call("sendMessage", 1);
  });

  test("[CHT8] only the configured approvers can answer, whoever wrote", async () => {
    const { world, telegram, model, telegramSends } = bind(
      await openWorld({ ask: ["sessions_list"], channel: 'approvers: ["6"]' }),
    );
    await telegramSends(telegram.update({ text: "@skein_bot list them", from: ann, chat: -100 }));
    (await model.request(0)).callTool("sessions_list", {});
    const card = await telegram.call("sendMessage");
    await telegramSends(telegram.press(card, 5001, "Approve", ann));
    expect(await world.openApprovals()).toBe(1);
    await telegramSends(telegram.press(card, 5001, "Approve", bob));
    expect(await world.openApprovals()).toBe(0);
    (await model.request(1)).finish("Done.");
  });
});

describe("announcements", () => {
  test("[CHT9] the result of a spawned session is announced in the thread that asked for it", async () => {
    const { slack, model, slackSends } = bind(await openWorld());
    const thread = "1800000000.000100";
    await slackSends(slack.event({ text: `${mention} research gardens`, ts: thread }));
    (await model.request(0)).callTool("sessions_spawn", { task: "Describe the gardens of Kyoto" });
    const requests = [await model.request(1), await model.request(2)];
    const child = requests.find(({ lastUserText }) => lastUserText.includes("gardens of Kyoto"));
    const parent = requests.find((request) => request !== child);
    parent?.finish("I am on it.");
    await slack.call("chat.postMessage");
    child?.finish("Moss and stone.");
    (await model.request(3)).finish("The gardens are moss and stone.");
    const { params } = await slack.call("chat.postMessage", 1);
    expect(params).toMatchObject({ channel: "C0DESK", thread_ts: thread });
    expect(JSON.stringify(params)).toContain("moss and stone");
  });
});

describe("packages", () => {
  test("[CHT10] a missing package is reported with the command that installs it", async () => {
    const { world, slack, slackSends } = bind(await openWorld({ packages: null }));
    expect(await slackSends(slack.event({ text: "Hello", channel: "D0ANN" }))).toBe(503);
    expect(world.log()).toContain(
      'Channel \\"team\\" (Slack) needs the packages chat and @chat-adapter/slack, which are not installed. Run: npm install chat@4 @chat-adapter/slack@4.',
    );
  });

  test("[CHT11] an unsupported version is reported with the command that installs a supported one", async () => {
    const packages = { chat: "5.0.0", "@chat-adapter/slack": "4.41.1", "@chat-adapter/telegram": "4.38.9" };
    const { world, slack, telegram, slackSends, telegramSends } = bind(await openWorld({ packages }));
    expect(await slackSends(slack.event({ text: "Hello", channel: "D0ANN" }))).toBe(503);
    expect(world.log()).toContain("cannot use chat 5.0.0, because Skein supports 4.39 or newer, but below 5");
    expect(await telegramSends(telegram.update({ text: "Hello" }))).toBe(503);
    expect(world.log()).toContain("Run: npm install chat@4.");
  });
});

describe("Telegram", () => {
  test("[CHT1] a direct message is answered in its chat", async () => {
    const { telegram, model, telegramSends, keys } = bind(await openWorld());
    expect(await telegramSends(telegram.update({ text: "Is it fixed?" }))).toBe(200);
    (await model.request(0)).finish("Yes, since noon.");
    const { params } = await telegram.call("sendMessage");
    expect(params).toMatchObject({ chat_id: "5", text: "Yes, since noon\\." });
    expect(await keys()).toEqual(["agent:main:tg:user:5"]);
  });

  test("[CHT1] a message in a topic of a group is answered in its topic", async () => {
    const { telegram, model, telegramSends, keys } = bind(await openWorld());
    await telegramSends(telegram.update({ text: "@skein_bot Is it fixed?", chat: -100, topic: 7 }));
    const request = await model.request(0);
    expect(request.lastUserText).toBe("Ann: Is it fixed?");
    request.finish("Yes");
    const { params } = await telegram.call("sendMessage");
    expect(params).toMatchObject({ chat_id: "-100", message_thread_id: 7, text: "Yes" });
    expect(await keys()).toEqual(["agent:main:tg:group:-100:thread:7"]);
  });

  test("[CHT2] an answer is posted while it is being written, and continues after a restart in the same message", async () => {
    const { world, telegram, model, telegramSends } = bind(await openWorld());
    await telegramSends(telegram.update({ text: "Tell me a story" }));
    (await model.request(0)).stream("Once upon a time");
    expect((await telegram.call("sendMessage")).params.text).toBe("Once upon a time");
    await world.restart();
    (await model.request(1)).finish("Once upon a time there was a loom");
    await soon(() => telegram.of("editMessageText").at(-1)?.params).toMatchObject({
      message_id: 5001,
      text: "Once upon a time there was a loom",
    });
    expect(telegram.of("sendMessage")).toHaveLength(1);
  });

  test("[CHT3] an update without the secret token is rejected", async () => {
    const { telegram, model, telegramSends, keys } = bind(await openWorld());
    expect(await telegramSends(telegram.update({ text: "Hello" }), "wrong-secret")).toBe(401);
    expect([model.count, await keys()]).toEqual([0, []]);
  });

  test("[CHT4] an update that is delivered again is answered once, also after a restart", async () => {
    const { world, telegram, model, telegramSends } = bind(await openWorld());
    const update = telegram.update({ text: "Only once" });
    const statuses = [await telegramSends(update), await telegramSends(update)];
    (await model.request(0)).finish("Once");
    await telegram.call("sendMessage");
    await world.restart();
    statuses.push(await telegramSends(update));
    // A different update can also contain the same message.
    statuses.push(await telegramSends(telegram.update({ text: "Only once", messageId: 1 })));
    await telegramSends(telegram.update({ text: "And this" }));
    (await model.request(1)).finish("Twice");
    await telegram.call("sendMessage", 1);
    expect(statuses).toEqual([200, 200, 200, 200]);
    expect([model.count, telegram.of("sendMessage").length]).toEqual([2, 2]);
  });

  test("[CHT5] in a group, the model is told who wrote each message", async () => {
    const { telegram, model, telegramSends } = bind(await openWorld());
    await telegramSends(telegram.update({ text: "@skein_bot I prefer tea", from: ann, chat: -100 }));
    (await model.request(0)).finish("Noted");
    await telegram.call("sendMessage");
    await telegramSends(telegram.update({ text: "@skein_bot I prefer coffee", from: bob, chat: -100 }));
    const said = JSON.stringify((await model.request(1)).messages);
    expect(said).toContain("Ann: I prefer tea");
    expect(said).toContain("Bob: I prefer coffee");
  });

  test("[CHT12] the model sees an image and reads a text file", async () => {
    const { telegram, model, telegramSends } = bind(await openWorld());
    telegram.files.set("image", Buffer.from(pixel, "base64"));
    telegram.files.set("notes", Buffer.from("The pump is in the cellar."));
    const image = { file_id: "image", file_unique_id: "1", file_name: "pump.png", mime_type: "image/png" };
    await telegramSends(telegram.update({ files: { caption: "What is this?", document: image } }));
    const request = await model.request(0);
    expect(JSON.stringify(request.messages.at(-1))).toContain(`data:image/png;base64,${pixel}`);
    request.finish("One pixel");
    await telegram.call("sendMessage");
    const notes = { file_id: "notes", file_unique_id: "2", file_name: "notes.txt", mime_type: "text/plain" };
    await telegramSends(telegram.update({ files: { caption: "And this?", document: notes } }));
    expect((await model.request(1)).lastUserText).toBe(
      "And this?\n\n[File: notes.txt (text/plain)]\nThe pump is in the cellar.",
    );
  });

  test("[CHT13] a long answer is delivered as several messages", async () => {
    const { telegram, model, telegramSends } = bind(await openWorld({ channel: "streaming: off" }));
    await telegramSends(telegram.update({ text: "Everything, please" }));
    const words = Array.from({ length: 1500 }, (_, index) => `w${index}`).join(" ");
    (await model.request(0)).finish(words);
    const sent = [
      await telegram.call("sendMessage", 0),
      await telegram.call("sendMessage", 1),
      await telegram.call("sendMessage", 2),
    ];
    expect(sent.map(({ params }) => params.text).join(" ")).toBe(words);
  });

  test("[CHT14] a delivery that fails is repeated, and continues after the parts that arrived", async () => {
    const { telegram, model, telegramSends } = bind(await openWorld({ channel: "streaming: off" }));
    await telegramSends(telegram.update({ text: "Everything, please" }));
    const parts = ["a", "b"].map((letter) => letter.repeat(3400));
    telegram.failNext("sendMessage", {
      status: 502,
      body: { ok: false, error_code: 502, description: "Bad Gateway" },
    });
    (await model.request(0)).finish(parts.join("\n\n"));
    await telegram.call("sendMessage", 1);
    expect(telegram.of("sendMessage").map(({ params }) => params.text)).toEqual(parts);
  });
});

describe("WhatsApp", () => {
  test("[CHT1] a message is answered in its conversation", async () => {
    const world = await openWorld();
    const { whatsapp, model } = world;
    expect(await world.whatsappSends(whatsapp.event("Is it fixed?"))).toBe(200);
    (await model.request(0)).finish("Yes, since noon.");
    const { params } = await whatsapp.call("messages");
    expect(params).toMatchObject({ to: "15550001", text: { body: "Yes, since noon." } });
    expect(await world.keys()).toEqual(["agent:main:wa:user:15550001"]);
  });

  test("[CHT3] a request with an invalid signature is rejected", async () => {
    const world = await openWorld();
    expect(await world.whatsappSends(world.whatsapp.event("Hello"), "f".repeat(32))).toBe(401);
    expect([world.model.count, await world.keys()]).toEqual([0, []]);
  });

  test("[CHT4] a message that is delivered again is answered once, also after a restart", async () => {
    const world = await openWorld();
    const { whatsapp, model } = world;
    const event = whatsapp.event("Only once");
    const statuses = [await world.whatsappSends(event), await world.whatsappSends(event)];
    (await model.request(0)).finish("Once.");
    await whatsapp.call("messages");
    await world.restart();
    statuses.push(await world.whatsappSends(event));
    // A later message is answered after all earlier ones.
    await world.whatsappSends(whatsapp.event("And this", "wamid.in2"));
    (await model.request(1)).finish("Twice.");
    await whatsapp.call("messages", 1);
    expect(statuses).toEqual([200, 200, 200]);
    expect([model.count, whatsapp.of("messages").length]).toEqual([2, 2]);
  });

  test("the address of the channel is verified with the configured token", async () => {
    const world = await openWorld();
    const verify = async (token: string) => {
      const query = `hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token=${token}`;
      const response = await fetch(`${world.urlOf("wa")}?${query}`);
      return [response.status, await response.text()];
    };
    expect(await verify(world.whatsapp.settings.verifyToken)).toEqual([200, "1158201444"]);
    expect(await verify("another")).toEqual([403, "Forbidden"]);
  });
});

describe("GitHub", () => {
  const comments = "/repos/acme/loom/issues/5/comments";

  test("[CHT1] a comment that mentions the bot is answered in its issue", async () => {
    const world = await openWorld({ channel: "streaming: off" });
    const { github, model } = world;
    expect(await world.githubSends(github.event("@skein-helper Is it fixed?"))).toBe(200);
    const request = await model.request(0);
    expect(request.lastUserText).toContain("Is it fixed?");
    request.finish("Yes, since noon.");
    const { params } = await github.call(comments);
    expect(String(params.body)).toContain("Yes, since noon.");
    expect(await world.keys()).toEqual(["agent:main:gh:group:acme/loom:thread:issue%3A5"]);
  });

  test("[CHT2] an answer whose comment a person has deleted is posted again", async () => {
    const world = await openWorld();
    const { github, model } = world;
    await world.githubSends(github.event("@skein-helper Is it fixed?"));
    const request = await model.request(0);
    request.stream("Yes, since");
    await github.call(comments);
    github.failNext("/repos/acme/loom/issues/comments/700", { status: 404, body: { message: "Not Found" } });
    request.finish("Yes, since noon.");
    const { params } = await github.call(comments, 1);
    expect(String(params.body)).toContain("Yes, since noon.");
  });

  test("[CHT3] an event with an invalid signature is rejected", async () => {
    const world = await openWorld();
    expect(await world.githubSends(world.github.event("@skein-helper Hello"), "f".repeat(32))).toBe(401);
    expect([world.model.count, await world.keys()]).toEqual([0, []]);
  });

  test("[CHT16] an event is accepted when it is sent again after the lookup of the bot's account failed", async () => {
    const world = await openWorld({ channel: "streaming: off" });
    const { github, model } = world;
    github.failNext("/user", { status: 500, body: {} });
    github.failNext("/app", { status: 500, body: {} });
    const event = github.event("@skein-helper Hello");
    expect(await world.githubSends(event)).toBe(503);
    expect(world.log()).toContain("GitHub did not accept channels.gh.settings.token");
    expect(await world.githubSends(event)).toBe(200);
    (await model.request(0)).finish("Hello.");
    await github.call(comments);
  });

  test("[CHT4] an event that is delivered again is answered once, also after a restart", async () => {
    const world = await openWorld({ channel: "streaming: off" });
    const { github, model } = world;
    const event = github.event("@skein-helper Only once");
    const statuses = [await world.githubSends(event), await world.githubSends(event)];
    (await model.request(0)).finish("Once.");
    await github.call(comments);
    await world.restart();
    statuses.push(await world.githubSends(event));
    // A later comment is answered after all earlier ones.
    await world.githubSends(github.event("@skein-helper And this", 502));
    (await model.request(1)).finish("Twice.");
    await github.call(comments, 1);
    expect(statuses).toEqual([200, 200, 200]);
    expect([model.count, github.of(comments).length]).toEqual([2, 2]);
  });
});

/** Methods without their object, so that a test reads as a story. */
function bind(world: ChatWorld) {
  const { slack, telegram, model } = world;
  return {
    ...{ world, slack, telegram, model },
    slackSends: world.slackSends.bind(world),
    telegramSends: world.telegramSends.bind(world),
    keys: world.keys.bind(world),
  };
}
