import { Link2 } from 'lucide-react'
import { Link } from 'wouter'
import { type Share, useShareActs, useShares } from '@/data/sharing'
import { Area } from '@/settings/Area'
import { Empty, Failed, Loading } from '@/ui/States'
import { type Column, Table } from '@/ui/Table'
import { TakeBack } from '@/ui/TakeBack'
import { When } from '@/ui/When'

/** The pages that somebody with a link can read now. */
export default function Shares() {
  const { data, error, refetch } = useShares()
  return (
    <Area
      title="Shared pages"
      about="Each can be read by whoever has its link, until it ends. A link is told once, when it is made: a conversation’s menu makes one."
    >
      {error ? (
        <Failed error={error} again={() => void refetch()} />
      ) : !data ? (
        <Loading rows={3} />
      ) : data.data.length ? (
        <Table label="Shared pages" columns={COLUMNS} rows={data.data} keyOf={(share) => share.id} />
      ) : (
        <Empty icon={Link2} title="Nothing is shared" />
      )}
    </Area>
  )
}

const COLUMNS: readonly Column<Share>[] = [
  {
    head: 'Page',
    cell: (share) => (
      <Link href={`/c/${share.conversation}`} className="font-medium break-words underline underline-offset-2">
        {share.title || 'Untitled'}
      </Link>
    ),
  },
  { head: 'Shared', wide: true, cell: (share) => <When at={share.created_at} /> },
  { head: 'Ends', cell: (share) => <When at={share.expires_at} /> },
  { head: 'Take back', cell: (share) => <Revoke share={share} /> },
]

function Revoke({ share }: { share: Share }) {
  const { revoke } = useShareActs()
  const name = share.title || 'Untitled'
  return <TakeBack act="Take back" name={name} busy={revoke.isPending} onSure={() => revoke.mutate(share.id)} />
}
