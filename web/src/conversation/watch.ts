import type { LogEvent } from '@/api/types'

/** Events that may change the displayed messages. */
const CHANGES = new Set(['message', 'tree', 'meta', 'tombstone'])

/** ms before a stream that the server rejected is opened again. After a lost connection, the browser reopens it by itself. */
const REOPENED = 3_000

/** Watch a conversation for changes by another tab, a terminal or a cron job, while the page streams no response. */
export class Watch {
  private source: EventSource | null = null
  private timer: ReturnType<typeof setTimeout> | undefined
  private readonly id: string
  private readonly changed: () => void

  constructor(id: string, changed: () => void) {
    this.id = id
    this.changed = changed
  }

  /** Watch events after the given sequence number. */
  start(after: number): void {
    if (this.source) return
    const source = new EventSource(`/api/conversations/${encodeURIComponent(this.id)}/events?after=${after}`)
    this.source = source
    source.onmessage = (message: MessageEvent<string>) => this.look(message.data)
    source.onerror = () => {
      if (source.readyState === EventSource.CLOSED) this.reload(REOPENED)
    }
  }

  stop(): void {
    clearTimeout(this.timer)
    this.source?.close()
    this.source = null
  }

  private look(data: string): void {
    if (data === '[DONE]') return
    const event = JSON.parse(data) as LogEvent
    const changes =
      CHANGES.has(event.kind) || event.chunks.some((chunk) => chunk.type === 'start') || event.phase === 'end'
    if (changes) this.reload(30)
  }

  private reload(pause: number): void {
    clearTimeout(this.timer)
    this.timer = setTimeout(() => {
      this.stop()
      this.changed()
    }, pause)
  }
}
