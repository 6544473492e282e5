// Drives a running server with the AI SDK's own client of one version: every scenario in one process, a line of JSON for each.
// Arguments: the version (6 or 7), then a JSON object {url, token, directory, only?}. `{"ask": WORD}` asks the test to do something to the
// server; an answering line on stdin says that it was done.
import { createInterface } from "node:readline";

const version = process.argv[2];
const { url, token, directory, only } = JSON.parse(process.argv[3]);
const ai = await import(`ai${version}`);
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const headers = { authorization: `Bearer ${token}`, ...(version === "7" ? { "x-ai-sdk-version": "7" } : {}) };
const LONG = "All work and no play makes a dull model. ".repeat(20).trim();

class Chat extends ai.AbstractChat {
  constructor({ messages = [], ...init }) {
    const state = {
      status: "ready",
      error: undefined,
      messages,
      pushMessage(message) {
        state.messages = [...state.messages, message];
      },
      popMessage() {
        state.messages = state.messages.slice(0, -1);
      },
      replaceMessage(index, message) {
        state.messages = state.messages.map((old, at) => (at === index ? message : old));
      },
      snapshot: (thing) => structuredClone(thing),
    };
    super({ ...init, state });
  }
}

// A connection that breaks after so many bytes, once.
function breaking(bytes) {
  let left = bytes;
  return async (...request) => {
    const response = await fetch(...request);
    if (left <= 0 || !response.body) return response;
    const body = response.body.pipeThrough(
      new TransformStream({
        transform(chunk, controller) {
          left -= chunk.length;
          if (left <= 0) controller.error(new TypeError("network error"));
          else controller.enqueue(chunk);
        },
      }),
    );
    return new Response(body, { status: response.status, headers: response.headers });
  };
}

function open(name, { body = {}, fetch: via, ...init } = {}) {
  const id = init.id ?? `${name}-${version}`;
  const transport = new ai.DefaultChatTransport({ api: `${url}/api/chat`, headers, body: { directory, ...body }, ...(via ? { fetch: via } : {}) });
  return new Chat({ id, transport, ...init });
}

const ask = async (word) => {
  console.log(JSON.stringify({ ask: word }));
  await lines.next();
};
const say = (name) => `${name}/${version}`;
const stored = async (chat) => (await fetch(`${url}/api/chat/${chat.id}/messages`, { headers })).json();
const text = (message) => (message?.parts ?? []).filter((part) => part.type === "text").map((part) => part.text).join("");
const call = (message) => message.parts.find((part) => part.type.startsWith("tool-"));
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function until(claim, what) {
  for (let tries = 0; tries < 3000; tries++) {
    if (await claim()) return;
    await sleep(10);
  }
  throw new Error(`it never came to this: ${what}`);
}

function same(found, expected, what) {
  const [a, b] = [JSON.stringify(found), JSON.stringify(expected)];
  if (a !== b) throw new Error(`${what}: ${a?.slice(0, 300)}, expected ${b?.slice(0, 300)}`);
}

// What a client has at the end must be what the server has: the same parts, whichever way they came.
async function agrees(chat) {
  const bare = (message) => ({
    id: message.id,
    role: message.role,
    parts: message.parts.map(({ type, text, state, output, data }) =>
      message.role === "user" ? { type, text } : { type, text, state, output, data },
    ),
  });
  same(chat.messages.map(bare), (await stored(chat)).map(bare), "client and server differ");
}

const approving = { body: { mode: "ask" }, sendAutomaticallyWhen: ai.lastAssistantMessageIsCompleteWithApprovalResponses };

async function answered(name, approved, options = {}) {
  const chat = open(name, { ...approving, ...options });
  await chat.sendMessage({ text: say(name) });
  same(call(chat.lastMessage).state, "approval-requested", "state before the answer");
  await options.before?.();
  await chat.addToolApprovalResponse({ id: call(chat.lastMessage).approval.id, approved });
  await until(() => ["ready", "error"].includes(chat.status) && call(chat.lastMessage).state !== "approval-responded", "an answered call");
  return chat;
}

const scenarios = {
  async send() {
    const chat = open("send");
    await chat.sendMessage({ text: say("send") });
    same([chat.status, text(chat.lastMessage), chat.messages.length], ["ready", LONG, 2], "the answer");
    if (chat.lastMessage.metadata.model !== "scripted") throw new Error("the metadata names no model");
    await agrees(chat);
  },
  async stream() {
    const chat = open("stream");
    const seen = new Set();
    let done = false;
    const sending = chat.sendMessage({ text: say("stream") }).finally(() => (done = true));
    while (!done) {
      seen.add(text(chat.lastMessage).length);
      await sleep(5);
    }
    await sending;
    if (seen.size < 4) throw new Error(`the text came in ${seen.size} pieces`);
    await agrees(chat);
  },
  async stop() {
    const chat = open("stop");
    const sending = chat.sendMessage({ text: say("stop") });
    await until(() => chat.lastMessage?.role === "assistant" && text(chat.lastMessage), "a first word");
    await fetch(`${url}/api/chat/${chat.id}/stop`, { method: "POST", headers });
    await sending;
    if (text(chat.lastMessage).length >= LONG.length) throw new Error("it was not stopped");
    same((await stored(chat)).at(-1).parts.filter((part) => part.state === "streaming"), [], "open parts");
    await agrees(chat);
  },
  async "resume after a cut"() {
    const chat = open("cut", { fetch: breaking(1500) });
    await chat.sendMessage({ text: say("cut") });
    if (text(chat.lastMessage) === LONG) throw new Error("the connection did not break");
    await chat.resumeStream();
    same([text(chat.lastMessage), chat.messages.length], [LONG, 2], "after the resume");
    await agrees(chat);
  },
  async approve() {
    const chat = await answered("approve", true);
    same([call(chat.lastMessage).state, text(chat.lastMessage), chat.messages.length], ["output-available", "Written.", 2], "after the yes");
    await agrees(chat);
  },
  async deny() {
    const chat = await answered("deny", false);
    same([call(chat.lastMessage).state, text(chat.lastMessage)], ["output-denied", "As you like."], "after the no");
  },
  async "resume after an approval"() {
    let broken = false;
    const via = (...request) => (broken ? breaking(700)(...request) : fetch(...request));
    const chat = open("leg", { ...approving, fetch: (...request) => via(...request) });
    await chat.sendMessage({ text: say("leg") });
    broken = true;
    await chat.addToolApprovalResponse({ id: call(chat.lastMessage).approval.id, approved: true });
    await until(() => chat.status === "error" || chat.status === "ready", "the end of the cut stream");
    broken = false;
    await chat.resumeStream();
    same([call(chat.lastMessage).state, text(chat.lastMessage), chat.messages.length], ["output-available", LONG, 2], "after the resume");
    const approval = (await stored(chat)).at(-1).parts.find((part) => part.approval).approval;
    same(approval.approved, true, "what the server tells of the approval");
    if (version === "7") same(call(chat.lastMessage).approval.approved, true, "what the client knows of it");
  },
  async regenerate() {
    const chat = open("regenerate");
    await chat.sendMessage({ text: say("regenerate") });
    const first = chat.lastMessage.id;
    await chat.regenerate();
    same([text(chat.lastMessage), chat.messages.length, chat.lastMessage.id === first], ["Second.", 2, false], "the second answer");
    await chat.regenerate({ messageId: chat.lastMessage.id });
    same([text(chat.lastMessage), chat.messages.length], ["Third.", 2], "the third answer");
    await agrees(chat);
  },
  async edit() {
    const chat = open("edit");
    await chat.sendMessage({ text: say("edit") });
    await chat.sendMessage({ text: `${say("edit")} and more` });
    await chat.sendMessage({ text: `${say("changed")}`, messageId: chat.messages[0].id });
    same(chat.messages.map(text), [say("changed"), "Changed."], "the branch that is shown");
    await agrees(chat);
  },
  async "client tools"() {
    const chat = open("tools", {
      body: { tools: [{ name: "pick_color", description: "Picks a colour.", inputSchema: { type: "object", properties: { hint: { type: "string" } } } }] },
      sendAutomaticallyWhen: ai.lastAssistantMessageIsCompleteWithToolCalls,
      onToolCall({ toolCall }) {
        chat.addToolOutput({ tool: "pick_color", toolCallId: toolCall.toolCallId, output: { color: "red", hint: toolCall.input.hint } });
      },
    });
    await chat.sendMessage({ text: say("tools") });
    await until(() => chat.status === "ready" && text(chat.lastMessage), "an answer to the output");
    same([call(chat.lastMessage).output, text(chat.lastMessage)], [{ color: "red", hint: "warm" }, "Red."], "the tool and the answer");
    await agrees(chat);
  },
  async attachments() {
    const chat = open("file");
    const data = Buffer.from("\x89PNG\r\n\x1a\nsmall", "latin1").toString("base64");
    const files = [{ type: "file", mediaType: "image/png", filename: "a.png", url: `data:image/png;base64,${data}` }];
    await chat.sendMessage({ text: say("file"), files });
    same([chat.status, text(chat.lastMessage)], ["ready", "Seen."], "the answer");
    const file = (await stored(chat))[0].parts.find((part) => part.type === "file");
    same([file.filename, file.url], ["a.png", files[0].url], "the stored file");
  },
  async "error in the middle"() {
    const chat = open("error");
    await chat.sendMessage({ text: say("error") });
    same(chat.status, "error", "the status");
    if (!chat.error.message) throw new Error("the error says nothing");
    const again = open("error", { messages: await stored(chat) });
    await again.resumeStream();
    same([again.status, again.messages.length], ["ready", 2], "the status after a resume, which replays nothing");
  },
  async "two clients"() {
    const one = open("two");
    const sending = one.sendMessage({ text: say("two") });
    await until(() => text(one.lastMessage).length > 10 && one.lastMessage.role === "assistant", "a first word");
    const other = open("two", { messages: await stored(one) });
    await Promise.all([sending, other.resumeStream()]);
    same(text(other.lastMessage), LONG, "what the second one has");
    await agrees(one);
    await agrees(other);
  },
  async "large output"() {
    const chat = open("large");
    await chat.sendMessage({ text: say("large") });
    const output = call(chat.lastMessage).output;
    same([output.type, text(chat.lastMessage), JSON.stringify(chat.lastMessage).length < 32768], ["excerpt", "Counted.", true], "the message");
    await agrees(chat);
  },
  async "server restart"() {
    const chat = open("restart");
    const sending = chat.sendMessage({ text: say("restart") });
    await until(() => chat.lastMessage?.role === "assistant" && text(chat.lastMessage), "a first word");
    await ask("restart");
    await sending;
    await chat.resumeStream();
    same([chat.status, chat.messages.length], ["ready", 2], "after the restart");
    if (text(chat.lastMessage).split("Back again.").length !== 2) throw new Error(`the answer is there other than once: ${text(chat.lastMessage)}`);
    await agrees(chat);
  },
};

for (const [scenario, run] of Object.entries(scenarios)) {
  if (only && !only.includes(scenario)) continue;
  let problem = "";
  try {
    await run();
  } catch (error) {
    problem = `${error.message}`;
  }
  console.log(JSON.stringify({ scenario, version, problem }));
}
process.exit(0);
