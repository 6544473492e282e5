// Reads chunks as the AI SDK's own client of one version does. Arguments: the version; stdin: [{name, chunks}]. A line of JSON for each:
// {name, problem, parts}, where parts are those of the message that the client ends with.
const ai = await import(`ai${process.argv[2]}`);
let text = "";
for await (const piece of process.stdin) text += piece;

async function read(chunks) {
  const schema = ai.uiMessageChunkSchema?.();
  const stream = new ReadableStream({
    async start(controller) {
      for (const chunk of chunks) {
        const checked = schema ? await schema.validate(chunk) : { success: true };
        if (!checked.success) throw new Error(`${JSON.stringify(chunk)}: ${checked.error}`);
        controller.enqueue(chunk);
      }
      controller.close();
    },
  });
  let parts = [];
  for await (const message of ai.readUIMessageStream({ stream, terminateOnError: true })) parts = message.parts;
  return parts;
}

for (const { name, chunks } of JSON.parse(text)) {
  let found = { name, problem: "", parts: [] };
  try {
    found.parts = await read(chunks);
  } catch (error) {
    found.problem = String(error);
  }
  process.stdout.write(`${JSON.stringify(found)}\n`);
}
