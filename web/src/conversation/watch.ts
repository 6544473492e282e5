import type { LogEvent } from '@/api/types'

/** Kinds of event after which what is shown may not be what is there. */
const TELLING = new Set(['message', 'tree', 'meta', 'tombstone'])

/** Looks on while nothing streams here: another tab, a terminal or a schedule may write in the same conversation. */
export class Watch {
  private source: EventSource | null = null
  private timer: ReturnType<typeof setTimeout> | undefined
  private readonly id: string
  private readonly changed: () => void

  constructor(id: string, changed: () => void) {
    this.id = id
    this.changed = changed
  }

  /** Watches what comes behind that seq. */
  start(after: number): void {
    if (this.source) return
    const source = new EventSource(`/api/conversations/${encodeURIComponent(this.id)}/events?after=${after}`)
    this.source = source
    source.onmessage = (message: MessageEvent<string>) => this.look(message.data)
  }

  stop(): void {
    clearTimeout(this.timer)
    this.source?.close()
    this.source = null
  }

  private look(data: string): void {
    if (data === '[DONE]') return
    const event = JSON.parse(data) as LogEvent
    const tells =
      TELLING.has(event.kind) || event.chunks.some((chunk) => chunk.type === 'start') || event.phase === 'end'
    if (!tells) return
    clearTimeout(this.timer)
    this.timer = setTimeout(() => {
      this.stop()
      this.changed()
    }, 30)
  }
}
