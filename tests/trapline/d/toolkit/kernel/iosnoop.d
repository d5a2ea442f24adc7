#pragma D option quiet
io:::start { start_time[args[0]->b_edev, args[0]->b_blkno] = timestamp; start_uid[args[0]->b_edev, args[0]->b_blkno] = (int)uid; }
io:::done /start_time[args[0]->b_edev, args[0]->b_blkno]/ { this->t = timestamp - start_time[args[0]->b_edev, args[0]->b_blkno]; printf("%d %s %s %s %d %d\n", this->t / 1000, args[1]->dev_statname, args[2]->fi_pathname, args[0]->b_flags & B_READ ? "R" : "W", args[0]->b_bcount, args[0]->b_blkno); start_time[args[0]->b_edev, args[0]->b_blkno] = 0; }
