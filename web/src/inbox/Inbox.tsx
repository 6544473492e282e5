import { Inbox as InboxIcon } from 'lucide-react'
import { Link } from 'wouter'
import { type OpenApproval, useApprovals } from '@/data/approvals'
import { Empty, Failed, Loading } from '@/ui/States'
import { View } from '@/ui/View'
import { age, moment } from '@/ui/words'

/** Everything that waits for an answer, in all conversations. */
export default function Inbox() {
  const { data, error, refetch } = useApprovals()
  return (
    <View
      title="Inbox"
      about="What agents wait for, in all conversations. An answer holds for exactly the call that is shown."
    >
      {error && !data ? (
        <Failed error={error} again={() => void refetch()} />
      ) : data ? (
        <All approvals={data.data} />
      ) : (
        <Loading rows={3} />
      )}
    </View>
  )
}

function All({ approvals }: { approvals: readonly OpenApproval[] }) {
  if (!approvals.length) {
    return (
      <Empty icon={InboxIcon} title="Nothing waits for you">
        When an agent wants to do what only you can allow, it stands here and in its conversation.
      </Empty>
    )
  }
  return (
    <ul className="space-y-4">
      {approvals.map((approval) => (
        <li key={approval.id} className="min-w-0">
          <div className="mb-1.5 flex items-baseline gap-3 text-sm">
            <Link href={`/c/${approval.conversation}`} className="min-w-0 truncate font-medium hover:underline">
              {approval.title || 'Untitled'}
            </Link>
            <span className="ml-auto shrink-0 text-xs text-faint" title={moment(approval.asked_at)}>
              {age(approval.asked_at)}
            </span>
          </div>
        </li>
      ))}
    </ul>
  )
}
