// A model that says what the test says: the format of OpenAI's chat completions, in pieces.
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** What is said to a question, piece by piece. */
export type Script = (question: string) => Iterable<string> | AsyncIterable<string>;

export class Provider {
  private server: Server | null = null;
  script: Script = () => ["I have nothing to say."];

  /** Lines of a configuration that name this model for everything. */
  async start(): Promise<string> {
    const server = createServer((request, response) => {
      let text = "";
      request.on("data", (data: Buffer) => (text += data.toString()));
      request.on("end", () => {
        void this.answer(JSON.parse(text) as Asked, response);
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    this.server = server;
    const { port } = server.address() as AddressInfo;
    return `[models]\ndefault = "scripted/one"\n[models.providers.scripted]\nkind = "openai"\nbase_url = "http://127.0.0.1:${port}/v1"\n`;
  }

  stop(): void {
    this.server?.close();
  }

  private async answer(asked: Asked, response: ServerResponse): Promise<void> {
    const usage = { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 };
    const pieces = this.script(asked.messages.at(-1)?.content ?? "");
    const stream = asked.stream === true;
    response.writeHead(200, { "content-type": stream ? "text/event-stream" : "application/json" });
    const event = (data: object) => response.write(`data: ${JSON.stringify({ id: "1", object: "chat.completion.chunk", model: asked.model, ...data })}\n\n`);
    let said = "";
    for await (const content of pieces) {
      said += content;
      if (stream) event({ choices: [{ index: 0, delta: { content }, finish_reason: null }] });
    }
    if (stream) {
      event({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] });
      event({ choices: [], usage });
      response.end("data: [DONE]\n\n");
      return;
    }
    const message = { role: "assistant", content: said };
    response.end(JSON.stringify({ id: "1", object: "chat.completion", model: asked.model, choices: [{ index: 0, message, finish_reason: "stop" }], usage }));
  }
}

type Asked = { model: string; stream?: boolean; messages: { role: string; content: string }[] };
