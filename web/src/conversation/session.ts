import { Chat } from '@ai-sdk/react'
import { isLost, Problem } from '@/api/client'
import { conversations, runs } from '@/api/conversations'
import type { Conversation, Failure, Message, Node, Part, Queue, Queued, Run } from '@/api/types'
import { mayRefer } from '@/app/session'
import { type Early, type Jump, joined, putBack } from '@/conversation/early'
import { textOf } from '@/conversation/messages/parts'
import { type Notice, noticeOf } from '@/conversation/messages/progress'
import { outbox, type Unsent } from '@/conversation/outbox'
import { type Extra, transport } from '@/conversation/transport'
import { Watch } from '@/conversation/watch'
import { text } from '@/text'
import { notify, notifyError } from '@/ui/toasts'

/** Number of messages on the first page: more than a screen shows, few enough to load fast. */
const PAGE = 40
/** Number of messages per page when loading back to a distant message. */
const MOST = 200
/** The message tree is not loaded for conversations with more messages than this. */
const TREE = 2_000
/** Initial and maximum ms before a prompt that could not reach the server is sent again. Doubled with each attempt. */
const [RESENT, LONGEST] = [3_000, 60_000]

export interface State {
  conversation: Conversation | null
  /** The cursor of the previous page. Null if all messages are loaded. */
  older: string | null
  loading: boolean
  loadingOlder: boolean
  /** The first messages, which are shown in place of the latest ones after a jump to the start. */
  early: Early | null
  loadingNewer: boolean
  /** The last jump. Null if there was none. */
  jump: Jump | null
  queue: Queue
  nodes: readonly Node[]
  /** The run that is active, waiting or interrupted. */
  live: Run | null
  /** Why the last response failed, if it did. */
  failure: Failure | null
  /** Why the conversation couldn't be opened. */
  error: unknown
  /** The connection is lost and reconnecting. */
  lost: boolean
  /** Ids of prompts that are being sent. */
  sending: readonly string[]
  /** What the streamed run waits for, if the server has reported it. */
  notice: Notice | null
  /** The conversation that continues this one and should be shown instead. */
  movedTo: string | null
}

const NO_QUEUE: Queue = { runs: [], steered: [] }

const EMPTY: State = {
  conversation: null,
  older: null,
  loading: true,
  loadingOlder: false,
  early: null,
  loadingNewer: false,
  jump: null,
  queue: NO_QUEUE,
  nodes: [],
  live: null,
  failure: null,
  error: null,
  lost: false,
  sending: [],
  notice: null,
  movedTo: null,
}

/** A conversation open in this page: its messages, its stream and changes by other clients. */
export class Session {
  readonly id: string
  readonly chat: Chat<Message>
  private state: State = EMPTY
  private readonly listeners = new Set<() => void>()
  private readonly watch: Watch
  private retryTimer: ReturnType<typeof setTimeout> | undefined
  private tries = 0
  private fresh: boolean
  private opened = false
  private syncing: Promise<void> = Promise.resolve()
  private next: Promise<void> | null = null
  private joins = false
  private rounds = 0
  /** The last event at the time when messages were loaded again because a run had ended during loading. */
  private reread: number | null | undefined

  constructor(id: string, fresh: boolean) {
    this.id = id
    this.fresh = fresh
    if (fresh) this.state = { ...EMPTY, loading: false }
    this.chat = new Chat<Message>({
      id,
      transport: transport(() => this.accepted()),
      generateId: () => crypto.randomUUID(),
      onError: (error) => this.failed(error),
      onData: ({ type, data }) => {
        if (type === 'data-notice') notify(noticeIn(data))
        if (type === 'data-status') this.set({ notice: noticeOf(data) })
      },
      onFinish: ({ isDisconnect, isError }) => {
        this.set({ notice: null })
        if (!isDisconnect && !isError) this.settled()
      },
    })
    this.watch = new Watch(id, () => void this.sync(true))
  }

  // ── state for React ──────────────────────────────────────────────────────────────────────────────────────────────────────

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  get = (): State => this.state

  /** Resolve once the conversation is loaded, or can't be. */
  async loaded(): Promise<void> {
    while (this.state.loading) {
      await new Promise<void>((resolve) => {
        const stop = this.subscribe(() => {
          stop()
          resolve()
        })
      })
    }
  }

  private set(changes: Partial<State>): void {
    this.state = { ...this.state, ...changes }
    for (const listener of this.listeners) listener()
  }

  get busy(): boolean {
    return this.chat.status === 'streaming' || this.chat.status === 'submitted'
  }

  // ── loading and synchronization ──────────────────────────────────────────────────────────────────────────────────────────

  /** Start updates while a view shows the conversation. Return a function that stops them. */
  show(): () => void {
    const { opened } = this
    this.opened = true
    if (this.state.lost) void this.recover()
    else if (!opened && !this.fresh) void this.sync(true)
    else if (!this.busy) this.follow()
    const awake = () => this.awake()
    addEventListener('online', awake)
    document.addEventListener('visibilitychange', awake)
    return () => {
      removeEventListener('online', awake)
      document.removeEventListener('visibilitychange', awake)
      this.watch.stop()
      clearTimeout(this.retryTimer)
      clearTimeout(this.resendTimer)
      this.opened = false
      this.set({ early: null, jump: null }) // the next visit starts at the bottom
    }
  }

  private awake(): void {
    if (document.visibilityState === 'hidden') {
      this.watch.stop()
    } else if (this.state.lost) {
      this.tries = 0
      void this.recover()
    } else if (!this.busy && !this.fresh) {
      void this.sync(true)
    }
  }

  /**
   * Load the state from the server. With `join`, stream an active run. If a load is in progress, another one follows, because the first
   * may have read an older state.
   */
  sync(join = false): Promise<void> {
    this.joins ||= join
    this.next ??= this.syncing.then(() => {
      this.next = null
      this.syncing = this.load()
      return this.syncing
    })
    return this.next
  }

  private async load(): Promise<void> {
    const join = this.joins
    this.joins = false
    try {
      const [conversation, page] = await Promise.all([
        conversations.get(this.id),
        conversations.messages(this.id, null, PAGE),
      ])
      this.fresh = false
      const queue = isActive(conversation) ? await conversations.queue(this.id) : NO_QUEUE
      const queued = queue.runs.flatMap(({ prompt }) => (prompt ? [prompt] : []))
      for (const { id } of [...page.messages, ...queued, ...queue.steered]) this.arrived(id)
      if (!this.busy) this.take(withoutQueued(page.messages, queue), page.older)
      this.set({ conversation, queue, loading: false, error: null, lost: false })
      this.tries = 0
      this.resend()
      const live = ['running', 'queued'].includes(conversation.status)
      void this.around(conversation)
      if (
        !live &&
        this.reread !== conversation.last_seq &&
        page.messages.some(({ status }) => status === 'streaming')
      ) {
        this.reread = conversation.last_seq // the run ended after these messages were read
        void this.sync(true)
      } else if (join && live && !this.busy) void this.resume()
      else this.follow()
    } catch (error) {
      if (isLost(error)) this.lose()
      else if (error instanceof Problem && error.status === 404 && outbox.of(this.id).length) {
        this.fresh = true // its first prompt has not arrived yet
        this.set({ loading: false, error: null, lost: false })
        this.tries = 0
        this.resend()
      } else this.set({ loading: false, error })
    }
  }

  /** Load branches and the state of runs. They are not needed to show the messages. */
  private async around(conversation: Conversation): Promise<void> {
    const round = ++this.rounds
    const active = isActive(conversation)
    const last = this.chat.messages.at(-1)
    try {
      const [live, tree, failed] = await Promise.all([
        active ? runs.live(this.id) : [],
        conversation.message_count <= TREE ? conversations.tree(this.id) : null,
        last?.status === 'failed' && last.run ? runs.get(last.run) : null,
      ])
      if (round !== this.rounds) return // a later load has a newer state
      const started = live.find((run) => run.status !== 'queued') ?? null
      this.set({ live: started, nodes: tree?.data ?? [], failure: failed?.error ?? null })
    } catch (error) {
      if (round !== this.rounds) return
      if (isLost(error)) this.lose()
      else notifyError(error)
    }
  }

  /** Merge the newest page with the loaded messages of the same branch. Unchanged messages keep their identity. */
  private take(page: Message[], older: string | null): void {
    const before = this.chat.messages
    const first = page[0]
    const from = first ? before.findIndex((message) => message.id === first.id) : -1
    const known = new Map(before.map((message) => [message.id, message]))
    const merged = page.map((message) => {
      const same = known.get(message.id)
      return same && JSON.stringify(same) === JSON.stringify(message) ? same : message
    })
    const next = from > 0 ? [...before.slice(0, from), ...merged] : merged
    if (next.length !== before.length || next.some((message, at) => message !== before[at])) this.chat.messages = next
    if (from <= 0) this.set({ older })
  }

  /** Load the page before the first message. */
  async loadOlder(): Promise<void> {
    const { older, loadingOlder } = this.state
    if (!older || loadingOlder) return
    this.set({ loadingOlder: true })
    try {
      const page = await conversations.messages(this.id, older, PAGE * 2)
      const have = new Set(this.chat.messages.map((message) => message.id))
      this.chat.messages = [...page.messages.filter((message) => !have.has(message.id)), ...this.chat.messages]
      this.set({ older: page.older })
    } finally {
      this.set({ loadingOlder: false })
    }
  }

  /** Show the first messages. The latest ones stay loaded; those in between are loaded when they are scrolled to. */
  async toStart(): Promise<void> {
    if (this.state.early) return this.jump('start')
    if (this.state.older) {
      const first = await conversations.firstMessages(this.id, null, PAGE)
      if (!this.opened) return // the user has left meanwhile
      this.takeEarly(first)
    }
    this.jump('start')
  }

  /** Show the latest messages again, and move the focus to them. */
  toLatest(): void {
    this.set({ early: null })
    this.jump('latest')
  }

  /** Show the latest messages if the first ones are shown. The focus stays, because the user has not asked for this. */
  private leaveStart(): void {
    if (!this.state.early) return
    this.set({ early: null })
    this.jump('latest', false)
  }

  private jump(to: Jump['to'], focus = true): void {
    this.set({ jump: { to, focus, turn: (this.state.jump?.turn ?? 0) + 1 } })
  }

  /** Load the page after the first messages. */
  async loadNewer(): Promise<void> {
    const { early, loadingNewer } = this.state
    if (!early?.newer || loadingNewer) return
    this.set({ loadingNewer: true })
    try {
      const { messages, newer } = await conversations.firstMessages(this.id, early.newer, PAGE * 2)
      if (this.state.early === early) this.takeEarly({ messages: [...early.messages, ...messages], newer })
    } catch (error) {
      if (!(error instanceof Problem) || error.status !== 404) throw error
      this.leaveStart() // another branch is shown now
      await this.sync()
    } finally {
      this.set({ loadingNewer: false })
    }
  }

  private takeEarly(early: Early): void {
    const whole = joined(early, this.chat.messages)
    if (whole) this.chat.messages = whole
    this.set(whole ? { early: null, older: null } : { early })
  }

  /** Before a message is replaced: keep the first messages if it is one of them, because those after it are no longer shown. */
  private keepEarly(id: string): void {
    const { early } = this.state
    if (!early) return
    const kept = !this.busy && early.messages.some((message) => message.id === id)
    if (kept) this.chat.messages = early.messages
    this.set(kept ? { early: null, older: null } : { early: null })
  }

  /** Load a message, switching branches if needed. Return its id in the list, or null if it no longer exists. */
  async reveal(message: string): Promise<string | null> {
    if (!this.chat.messages.length) await this.sync(true)
    if (this.state.early?.messages.some((one) => one.stored_id === message)) return this.shownId(message)
    this.leaveStart()
    const place = this.state.nodes.find((node) => node.id === message)
    const there = this.shownId(message) ?? (place?.shown === false ? null : await this.loadBack(message))
    if (there) return there
    const before = this.state.conversation?.head
    await this.switchTo(message)
    const back = { label: text.common.back, act: () => void this.switchTo(before ?? message).catch(notifyError) }
    notify(text.conversation.otherBranch, { action: back })
    return this.shownId(message) ?? (await this.loadBack(message))
  }

  private shownId(message: string): string | null {
    const shown = this.state.early?.messages ?? this.chat.messages
    return shown.find((one) => one.stored_id === message || one.id === message)?.id ?? null
  }

  /** Load all messages since the given one. Return null if it isn't on the current branch. */
  private async loadBack(message: string): Promise<string | null> {
    while (this.state.loadingOlder) await new Promise((wake) => setTimeout(wake, 20))
    this.set({ loadingOlder: true })
    try {
      const found: Message[] = []
      let { older } = this.state
      const isIt = (one: Message) => one.stored_id === message || one.id === message
      while (older && !found.some(isIt)) {
        const page = await conversations.messages(this.id, older, MOST)
        found.unshift(...page.messages)
        older = page.older
      }
      if (!found.some(isIt)) return null
      const have = new Set(this.chat.messages.map((one) => one.id))
      this.chat.messages = [...found.filter((one) => !have.has(one.id)), ...this.chat.messages]
      this.set({ older })
      return this.shownId(message)
    } finally {
      this.set({ loadingOlder: false })
    }
  }

  private async resume(): Promise<void> {
    this.watch.stop()
    await this.chat.resumeStream({ headers: { 'x-ai-sdk-version': '7' } })
    if (this.chat.status === 'ready') this.follow()
  }

  private follow(): void {
    const seq = this.state.conversation?.last_seq
    if (this.opened && document.visibilityState === 'visible' && typeof seq === 'number') this.watch.start(seq)
  }

  /** Reload totals and titles after a stream ended. */
  private settled(): void {
    setTimeout(() => void this.sync(true), 60)
  }

  // ── reconnection ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  private failed(error: Error): void {
    if (this.carried) return // the prompt was not accepted: it stays in the outbox
    if (isLost(error)) this.lose()
    else this.settled()
  }

  private lose(): void {
    this.watch.stop()
    this.set({ lost: true, loading: false })
    clearTimeout(this.retryTimer)
    const pause = Math.min(10_000, 500 * 2 ** this.tries++)
    this.retryTimer = setTimeout(() => void this.recover(), pause)
  }

  private async recover(): Promise<void> {
    clearTimeout(this.retryTimer)
    if (!this.opened) return
    this.chat.clearError()
    await this.sync(true)
  }

  // ── outbox ───────────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Number of attempts for each prompt that this tab could not send. Prompts of earlier visits are only sent after a click on Retry. */
  private readonly tried = new Map<string, number>()
  private resendTimer: ReturnType<typeof setTimeout> | undefined
  /** Id of the prompt in the open request, until the server accepts it. */
  private carried: string | null = null

  /** Store a prompt in the browser, then send it. */
  private async keep(entry: Omit<Unsent, 'conversation' | 'at'>): Promise<void> {
    if (entry.edits) this.keepEarly(entry.edits)
    else this.leaveStart()
    const kept = { ...entry, conversation: this.id, at: Date.now() }
    if (!outbox.put(kept)) notify(text.outbox.tabOnly, { danger: true })
    await this.deliver(kept)
  }

  /** Send a prompt from the outbox, and remove it when the server accepts it. If it is sent twice, the server stores it once. */
  async deliver(entry: Unsent): Promise<void> {
    const { id } = entry
    if (this.state.sending.includes(id) || !this.holds(id)) return
    clearTimeout(this.resendTimer)
    this.set({ sending: [...this.state.sending, id] })
    try {
      await this.carry(entry)
      this.tried.delete(id)
    } catch (error) {
      this.refused(entry, error)
    } finally {
      this.set({ sending: this.state.sending.filter((one) => one !== id) })
    }
  }

  private holds(id: string): boolean {
    return outbox.of(this.id).some((one) => one.id === id)
  }

  /** Called when the server has stored this message. */
  private arrived(id: string): void {
    if (outbox.of(this.id).some((one) => one.id === id && !one.edits)) outbox.remove(id)
  }

  /** Send the next prompt that could not reach the server, now that it can be reached. */
  private resend(): void {
    const next = outbox.of(this.id).find(({ id }) => this.tried.has(id))
    if (!next || this.state.sending.includes(next.id)) return
    clearTimeout(this.resendTimer)
    const pause = Math.min(LONGEST, RESENT * 2 ** ((this.tried.get(next.id) ?? 1) - 1))
    this.resendTimer = setTimeout(() => this.opened && void this.deliver(next), pause)
  }

  private async carry(entry: Unsent): Promise<void> {
    const references = entry.parts.some((part) => part.type === 'text' && part.text.includes('@')) && (await mayRefer())
    const extra = { ...entry.extra, ...(references && { references }) }
    const delivery = entry.delivery ?? (this.busy && !entry.edits ? 'queue' : undefined)
    if (delivery) {
      const submitted = await conversations.submit(this.id, {
        client_id: entry.id,
        parts: entry.parts,
        ...extra,
        on_busy: delivery,
      })
      for (const note of submitted.notes) notify(note)
      outbox.remove(entry.id)
      await this.sync(!this.busy)
      this.resend()
      return
    }
    const { edits } = entry
    if (edits && !this.chat.messages.some(({ id }) => id === edits)) await this.loadBack(edits) // reconnecting loads only the latest messages
    const { session, id } = await this.continuation(edits)
    if (session === this) return this.post({ ...entry, extra })
    outbox.remove(entry.id)
    await session.keep({ ...entry, ...(id && { edits: id }) })
  }

  private async post({ id, parts, extra, edits }: Unsent): Promise<void> {
    this.watch.stop()
    this.carried = id
    this.set({ lost: false, error: null })
    const before = this.chat.messages
    await this.chat.sendMessage(edits ? { role: 'user', parts, messageId: edits } : { id, role: 'user', parts }, {
      body: extra,
    })
    const { error } = this.chat
    const unsent = this.carried === id
    this.carried = null
    if (!unsent) return
    this.chat.messages = before
    this.chat.clearError()
    throw error
  }

  /** Called when the server has accepted the open request. */
  private accepted(): void {
    if (this.carried) {
      outbox.remove(this.carried)
      void this.showAttached(this.carried)
    }
    this.carried = null
    this.fresh = false
    this.resend()
  }

  /** Show what the server has attached to a prompt that refers to it. */
  private async showAttached(id: string): Promise<void> {
    if (!this.chat.messages.some((one) => one.id === id && textOf(one).includes('@'))) return
    try {
      const { messages } = await conversations.messages(this.id, null, 2)
      const stored = messages.find((one) => one.id === id)
      if (stored) this.chat.messages = this.chat.messages.map((one) => (one.id === id ? stored : one))
    } catch {
      // the messages are loaded again when the answer ends
    }
  }

  private refused(entry: Unsent, error: unknown): void {
    const lost = isLost(error) || (error instanceof Problem && [502, 503, 504].includes(error.status))
    const fix = error instanceof Problem && error.fix ? ` ${error.fix}` : ''
    const reason = lost ? text.outbox.unreachable : `${error instanceof Error ? error.message : String(error)}${fix}`
    if (this.holds(entry.id)) outbox.put({ ...entry, reason })
    if (lost) this.tried.set(entry.id, (this.tried.get(entry.id) ?? 0) + 1)
    else this.tried.delete(entry.id)
    if (lost) this.lose()
    else void this.sync(true)
  }

  // ── user actions ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Send a prompt and stream the response. */
  async send(parts: Part[], extra: Extra = {}): Promise<void> {
    await this.keep({ id: crypto.randomUUID(), parts, extra })
  }

  /** Return the session to which prompts are sent. For an imported conversation, that is a linked copy, which the page shows next. */
  private async continuation(id?: string): Promise<{ session: Session; id?: string }> {
    const { conversation } = this.state
    if (!conversation?.origin) return { session: this, id }
    const stored = this.chat.messages.find((one) => one.id === id)?.stored_id ?? id
    const continued = await conversations.continueFrom(this.id, stored)
    if (continued.conversation.id === conversation.id) return { session: this, id }
    const session = sessionOf(continued.conversation.id)
    await session.sync()
    notify(text.conversation.continued(String(conversation.origin.format ?? text.conversation.itsSource)))
    this.set({ movedTo: session.id })
    return { session, id: continued.message ?? undefined }
  }

  /** Called when the page shows the conversation that continues this one. */
  moved(): void {
    this.set({ movedTo: null })
  }

  /** Send a message during a run: queued, or delivered at its next step. */
  async sendDuringRun(parts: Part[], delivery: 'queue' | 'steer', extra: Omit<Extra, 'on_busy'> = {}): Promise<void> {
    await this.keep({ id: crypto.randomUUID(), parts, extra, delivery })
  }

  /** Replace a message. The original is kept as another version. */
  async edit(edits: string, parts: Part[], extra: Extra = {}): Promise<void> {
    await this.keep({ id: edits, parts, extra, edits })
  }

  /** Regenerate a response. The previous one is kept as another version. */
  async regenerate(answer?: string, extra: Extra = {}): Promise<void> {
    if (answer) this.keepEarly(answer)
    const { session, id } = await this.continuation(answer)
    session.watch.stop()
    await session.chat.regenerate({ messageId: id, body: extra })
  }

  /** Stop the run and empty the queue. Return the removed prompts, which no model has read yet. */
  async stop(): Promise<Part[][]> {
    const { runs: queued, steered } = await conversations.emptyQueue(this.id)
    await conversations.stop(this.id)
    for (const run of queued) await this.hide(run)
    if (!this.busy) void this.sync(true)
    else this.set({ queue: NO_QUEUE })
    return [...steered, ...queued.flatMap(({ prompt }) => (prompt ? [prompt] : []))].map(({ parts }) => parts)
  }

  /** Remove a prompt from the queue. */
  async withdraw(run: Queued): Promise<void> {
    await conversations.withdraw(this.id, run.id)
    await this.hide(run)
    await this.sync()
  }

  /** Withdraw a message that the live run has not received yet. */
  async withdrawSteered({ id, stored_id }: Message): Promise<void> {
    await conversations.withdrawSteered(this.id, stored_id ?? id)
    await this.sync()
  }

  /** Hide the messages of a withdrawn run, which no model has read. */
  private async hide({ message, prompt }: Queued): Promise<void> {
    for (const id of [message, prompt?.stored_id]) if (id) await conversations.deleteMessage(this.id, id)
  }

  /** Stream the rest of the run after an approval was answered. */
  answered(): void {
    if (!this.busy) void this.resume()
  }

  /** Delete a message: the model, the conversation and search no longer contain it. The notification restores it. */
  async remove(message: Message): Promise<void> {
    const id = message.stored_id ?? message.id
    const shown = this.state.early?.messages ?? this.chat.messages
    const following = shown[shown.findIndex((one) => one.id === message.id) + 1]?.id ?? ''
    const wasLast = !following && !this.state.early
    await conversations.deleteMessage(this.id, id)
    this.chat.messages = this.chat.messages.filter((one) => one.id !== message.id)
    const { early } = this.state
    if (early) this.set({ early: { ...early, messages: early.messages.filter((one) => one.id !== message.id) } })
    const restore = async () => {
      await conversations.restoreMessage(this.id, id)
      this.bringBack(message, following, wasLast)
      await this.sync()
    }
    notify(text.message.deleted, { action: { label: text.common.undo, act: () => void restore().catch(notifyError) } })
    await this.sync()
  }

  /** Show a restored message again in the list that it was deleted from. Meanwhile, other messages may have been loaded there. */
  private bringBack(message: Message, following: string, wasLast: boolean): void {
    const { early } = this.state
    const first = early && putBack(early.messages, message, following)
    if (early && first) this.set({ early: { ...early, messages: first } })
    if (first || this.busy) return
    const latest =
      putBack(this.chat.messages, message, following) ?? (wasLast ? [...this.chat.messages, message] : null)
    if (latest) this.chat.messages = latest
  }

  /** Switch to the branch of a message. */
  async switchTo(message: string): Promise<void> {
    await conversations.switch(this.id, message)
    this.leaveStart()
    await this.sync(true)
  }
}

function noticeIn(data: unknown): string {
  return data && typeof data === 'object' && 'text' in data ? String(data.text) : ''
}

function isActive({ status }: Conversation): boolean {
  return status !== 'standby' && status !== 'finished'
}

/** Return the messages without those of queued runs. The queue shows them, and the answer being written must be the last message. */
function withoutQueued(messages: Message[], { runs }: Queue): Message[] {
  const queued = new Set(runs.flatMap(({ message, prompt }) => [message, prompt?.stored_id]))
  return messages.filter(({ stored_id }) => !queued.has(stored_id))
}

const open = new Map<string, Session>()
const KEPT = 8

/** Return the session of a conversation. `fresh` means that the server doesn't have it yet. */
export function sessionOf(id: string, fresh = false): Session {
  const found = open.get(id) ?? new Session(id, fresh)
  open.delete(id)
  open.set(id, found)
  for (const [other, session] of open) {
    if (open.size <= KEPT) break
    if (!session.busy) open.delete(other)
  }
  return found
}
